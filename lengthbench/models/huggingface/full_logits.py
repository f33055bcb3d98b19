"""Losses from the class's own logits, for a checkpoint whose head has a form of its own.

Only the scored rows' logits are made where the class takes `logits_to_keep`, and never more than BUDGET numbers at
a time; a long window is then fed again for each slice of rows. Slower, and right.
"""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from lengthbench.errors import OutOfMemory
from lengthbench.models.loss import NoHead, score_rows
from lengthbench.trials import Scores, Trial

BUDGET = 1 << 28
"""Logits held at once: 1 GiB in float32."""


def score(trials: Sequence[Trial], network: Any, device: str) -> list[Scores]:
    try:
        with torch.inference_mode():
            return [_score(trial, network, device) for trial in trials]
    except torch.cuda.OutOfMemoryError as error:
        raise OutOfMemory(str(error).split("\n")[0]) from None


def keeps_rows(network: Any) -> bool:
    """Whether the class can be asked for the logits of some rows only."""
    return "logits_to_keep" in inspect.signature(network.forward).parameters


def _score(trial: Trial, network: Any, device: str) -> Scores:
    fed = torch.from_numpy(trial.fed.astype(np.int64)).to(device)[None]
    targets = torch.from_numpy(trial.targets.astype(np.int64)).to(device)
    rows = torch.from_numpy(trial.rows).to(device)
    size = max(1, BUDGET // network.config.get_text_config(decoder=True).vocab_size)
    size = size if keeps_rows(network) else len(rows)
    losses, firsts = [], []
    for kept, wanted in zip(rows.split(size), targets.split(size), strict=True):
        some = {"logits_to_keep": kept} if keeps_rows(network) else {}
        logits = network(input_ids=fed, use_cache=False, **some).logits[0]
        logits = logits if some else logits[kept]
        nll, first = score_rows(logits, wanted, NoHead(logits.shape[-1], logits.device))
        losses.append(nll.float().cpu().numpy())
        firsts.append(first.cpu().numpy())
    return Scores(np.concatenate(losses), np.concatenate(firsts))
