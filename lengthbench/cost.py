"""What a plan will cost, before it is spent: tokens to feed exactly, seconds by three short timed passes.

    seconds = a n + b n^2 + c k      n tokens fed, k of them scored      a: what is linear, b: attention, c: the head

and for a window that goes on behind s tokens it shares with another, a (n - s) + b (n^2 - s^2) + c k.
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lengthbench.errors import OutOfMemory
from lengthbench.model import Model
from lengthbench.plan import Plan
from lengthbench.trials import Trial

SHORT, LONG = 256, 2048
"""Tokens of the two timed windows."""
WORTH_IT = 16
"""Times the timed tokens that a plan must feed to be timed at all."""


def estimate(model: Model, plan: Plan, batch_tokens: int) -> float | None:
    """Seconds the plan will take; None if it is over sooner than timing it would be."""
    passes = [p.trial for batch in plan.batches for p in batch.passes]
    kept = np.array([n for batch in plan.batches for n in batch.shared or [0] * len(batch.passes)], np.float64)
    lengths = np.array([t.n_fed for t in passes], np.float64)
    longest = max(passes, key=lambda t: t.n_fed, default=None)
    fed = (lengths - kept).sum()
    if longest is None or fed < WORTH_IT * SHORT:
        return None
    if longest.budget:
        return None  # a generated token costs as much as many read ones, and nothing says how many come
    scored = sum(len(t.scored) for t in passes)
    short = _cut(longest, SHORT)
    many = max(1, min(batch_tokens // short.n_fed, len(passes)))
    try:
        every = _seconds(model, [short] * many) / many
        one = _seconds(model, [replace(short, scored=short.scored[-1:])] * many) / many
        head = max(0.0, every - one) / max(1, len(short.scored) - 1)
        if longest.n_fed <= LONG / 2 or fed < WORTH_IT * LONG:
            return float(one / short.n_fed * fed + head * scored)
        long = _cut(longest, LONG)
        slow = _seconds(model, [replace(long, scored=long.scored[-1:])])
    except OutOfMemory:
        return None
    n, m = short.n_fed, long.n_fed
    b = max(0.0, (slow / m - one / n) / (m - n))
    a = one / n - b * n
    return float(a * fed + b * (lengths**2 - kept**2).sum() + head * scored)


def _cut(trial: Trial, n_fed: int) -> Trial:
    """The first `n_fed` tokens of the window, everything in it scored."""
    size = min(n_fed, trial.n_fed) + 1 - (trial.start is not None)
    return replace(trial, tokens=trial.tokens[:size], scored=np.arange(trial.start is None, size))


def _seconds(model: Model, trials: Sequence[Trial]) -> float:
    """The quicker of two runs: the first one also warms up."""
    times = []
    for _ in range(2):
        began = time.perf_counter()
        model.score(trials)
        times.append(time.perf_counter() - began)
    return min(times)
