"""The one loop: passes through the model, out come the scores of every trial, or why there are none.

A batch that does not fit is halved until it does; a single pass that does not fit loses its longest trials, which
get status `oom`, and goes on with the rest. Memory on a CPU is estimated first: there the kernel kills, it does
not raise.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lengthbench import plan
from lengthbench.errors import OutOfMemory
from lengthbench.memory import PeakMemory, available
from lengthbench.model import Model
from lengthbench.trials import Scores, Trial

SPARE = 0.9
"""Share of the free memory that a batch may take."""


@dataclass(frozen=True, eq=False)
class Result:
    trial: int
    """Number of the trial in the list that was planned."""
    status: str
    """ok | oom | nonfinite"""
    detail: str = ""
    scores: Scores | None = None
    """None unless the pass was run."""
    seconds: float = 0.0
    """This trial's share of its pass."""
    fed: float = 0.0
    """This trial's share of the tokens fed."""
    peak_memory_bytes: int = 0


def run(
    model: Model,
    trials: Sequence[Trial],
    the_plan: plan.Plan,
    done: Callable[[int], bool] = lambda batch: False,
) -> Iterator[tuple[int, list[Result]]]:
    """Yield (number of the batch, results of its trials) for each batch that is not `done`, in plan order."""
    for number, batch in enumerate(the_plan.batches):
        if not done(number):
            chain = batch.shared is not None
            yield number, _chain(model, trials, batch) if chain else _run(model, trials, batch.passes)


def _run(model: Model, trials: Sequence[Trial], batch: Sequence[plan.Pass]) -> list[Result]:
    try:
        n_fed = batch[0].trial.n_fed
        _refuse_if_too_big(model.extra_bytes(n_fed, len(batch)))
        with PeakMemory(model.device) as memory:
            began = time.perf_counter()
            ask = model.generate if batch[0].trial.budget else model.score  # type: ignore[attr-defined]
            scores = ask([p.trial for p in batch])
            seconds = (time.perf_counter() - began) / len(batch)
    except OutOfMemory as error:
        if len(batch) > 1:
            half = len(batch) // 2
            return _run(model, trials, batch[:half]) + _run(model, trials, batch[half:])
        return _without_longest(model, trials, batch[0], str(error))
    return _results(trials, batch, scores, [seconds] * len(batch), [n_fed] * len(batch), memory.bytes)


def _chain(model: Model, trials: Sequence[Trial], batch: plan.Batch) -> list[Result]:
    """A chain, or its passes one by one where it does not fit."""
    assert batch.shared is not None
    try:
        _refuse_if_too_big(model.extra_bytes(max(p.trial.n_fed for p in batch.passes), 1))
        with PeakMemory(model.device) as memory:
            began = time.perf_counter()
            scores = model.score_chain([p.trial for p in batch.passes], batch.shared)  # type: ignore[attr-defined]
            seconds = time.perf_counter() - began
    except OutOfMemory:
        return [result for each in batch.passes for result in _run(model, trials, [each])]
    fed = [p.trial.n_fed - kept for p, kept in zip(batch.passes, batch.shared, strict=True)]
    return _results(trials, batch.passes, scores, [seconds * n / batch.n_fed for n in fed], fed, memory.bytes)


def _results(trials, passes, scores, seconds, fed, peak: int) -> list[Result]:
    """Results of the members of each pass, from its scores, seconds and fed tokens."""
    return [
        _result(trial, s, t * share, n * share, peak)
        for each, whole, t, n in zip(passes, scores, seconds, fed, strict=True)
        for (trial, s), share in zip(each.split(whole), each.shares(trials), strict=True)
    ]


def _result(trial: int, scores: Scores, seconds: float, fed: float, peak: int) -> Result:
    if np.isfinite(scores.nll).all():
        return Result(trial, "ok", "", scores, seconds, fed, peak)
    bad = int(np.count_nonzero(~np.isfinite(scores.nll)))
    detail = f"{bad} of {len(scores.nll)} losses are not finite"
    return Result(trial, "nonfinite", detail, scores, seconds, fed, peak)


def _without_longest(model: Model, trials: Sequence[Trial], each: plan.Pass, why: str) -> list[Result]:
    """The longest members are out of memory; the shorter ones may still fit a pass of their own."""
    longest = trials[each.members[0]].n_fed
    lost = [m for m in each.members if trials[m].n_fed == longest]
    rest = [m for m in each.members if trials[m].n_fed < longest]
    results = [Result(m, "oom", why) for m in lost]
    return results + _run(model, trials, [plan.merge(trials, rest)]) if rest else results


def _refuse_if_too_big(needed: int) -> None:
    free = available()
    if free is not None and needed > SPARE * free:
        raise OutOfMemory(f"needs about {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free")
