"""Trials of one length through a torch network: hidden states once, then losses of the scored rows."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lengthbench.errors import OutOfMemory
from lengthbench.models.loss import Head, NoHead, score_rows
from lengthbench.trials import Scores, Trial


def score(trials: Sequence[Trial], hidden: Callable[[Tensor], Tensor], head: Head | NoHead) -> list[Scores]:
    """`hidden` maps tokens (B, T) to states (B, T, W). All trials have the same `n_fed`."""
    assert len({t.n_fed for t in trials}) == 1, "batching only joins equal lengths"
    device = head.device
    try:
        with torch.inference_mode():
            fed = torch.from_numpy(np.stack([t.fed for t in trials]).astype(np.int64)).to(device)
            states = hidden(fed)
            rows = torch.cat([states[b, torch.from_numpy(t.rows).to(device)] for b, t in enumerate(trials)])
            targets = torch.from_numpy(np.concatenate([t.targets for t in trials]).astype(np.int64)).to(device)
            nll, first = score_rows(rows, targets, head)
            nll, first = nll.float().cpu().numpy(), first.cpu().numpy()
    except torch.cuda.OutOfMemoryError as error:
        raise OutOfMemory(str(error).split("\n")[0]) from None
    ends = np.cumsum([len(t.scored) for t in trials])[:-1]
    return [Scores(n, f) for n, f in zip(np.split(nll, ends), np.split(first, ends), strict=True)]


def generate(
    trials: Sequence[Trial],
    new_past: Callable[[int], Any],
    hidden: Callable[[Tensor, Any], Tensor],
    head: Head | NoHead,
):
    """Greedy continuation of each window, by `budget` tokens; a model over bytes never ends by itself."""
    found = []
    with torch.inference_mode():
        for trial in trials:
            past = new_past(trial.n_fed + trial.budget)
            fed, output = torch.from_numpy(trial.fed.astype(np.int64)), []
            for _ in range(trial.budget):
                state = hidden(fed[None].to(head.device), past)[0, -1:]
                fed = head.logits(state, 0, head.vocabulary).argmax(1).cpu()
                output.append(int(fed))
            nothing = np.zeros(0, np.float32)
            found.append(Scores(nothing, nothing.astype(bool), np.array(output, np.int32), False))
    return found


def score_chain(
    trials: Sequence[Trial],
    shared: Sequence[int],
    past: Any,
    hidden: Callable[[Tensor, Any], Tensor],
    head: Head | NoHead,
) -> list[Scores]:
    """One window after the other, each going back to the tokens it shares with the one before.

    shared: fed tokens that need not be fed again; past: with `cut(length)`; `hidden` continues it with tokens (1, T).
    """
    device, found = head.device, []
    try:
        with torch.inference_mode():
            for trial, keep in zip(trials, shared, strict=True):
                assert keep <= trial.rows[0], "the rows that are scored are fed"
                past.cut(keep)
                states = hidden(torch.from_numpy(trial.fed[keep:].astype(np.int64))[None].to(device), past)[0]
                rows = states[torch.from_numpy(trial.rows - keep).to(device)]
                targets = torch.from_numpy(trial.targets.astype(np.int64)).to(device)
                nll, first = score_rows(rows, targets, head)
                found.append(Scores(nll.float().cpu().numpy(), first.cpu().numpy()))
    except torch.cuda.OutOfMemoryError as error:
        raise OutOfMemory(str(error).split("\n")[0]) from None
    return found
