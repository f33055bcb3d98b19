"""Losses by context: where a bucket lies, which were seen in training, which are dear, and what to keep in view."""

from collections.abc import Sequence

import numpy as np

from lengthbench.plots.series import Series

DEAR = 1.1
"""Times the loss at the longest context within training: above it a short context counts as early."""


def middles(line: Series) -> np.ndarray:
    """(n,) the geometric middle of each bucket of contexts; half a token stands for a context of none."""
    return np.sqrt(np.maximum(line.numbers("context_from"), 0.5) * np.maximum(line.numbers("context_to"), 0.5))


def within(line: Series) -> np.ndarray:
    """(n,) bool: contexts that training has shown the model; all where the training length is not known."""
    to = line.numbers("context_to")
    return np.isfinite(to) if line.train_length is None else to <= line.train_length


def rows_at(line: Series, length: float) -> np.ndarray:
    """The rows of one length with a finite loss, by ascending context."""
    own = np.flatnonzero((line.lengths == length) & np.isfinite(line.column("nll")) & np.isfinite(middles(line)))
    return own[np.argsort(middles(line)[own], kind="stable")]


def early(line: Series) -> float | None:
    """Context up to which targets cost over 10 % more than at the longest within training; None if none do."""
    inside = within(line) & np.isfinite(line.column("nll"))
    if not inside.any():
        return None
    rows = rows_at(line, line.lengths[inside].max())
    rows = rows[inside[rows]]
    loss = line.column("nll")[rows]
    # Only those from the start on: a loss that rises again later is no matter of early tokens.
    n_dear = int(np.argmin(np.append(loss > DEAR * loss[-1:], False)))
    return float(line.numbers("context_to")[rows[n_dear - 1]]) if n_dear else None


def ceiling(lines: Sequence[Series]) -> float:
    """The largest loss to keep in view: a third more than the spread of losses within training."""
    every = np.concatenate([line.column("nll") for line in lines])
    every = every[np.isfinite(every)]
    inside = np.concatenate([line.column("nll")[within(line)] for line in lines])
    inside = inside[np.isfinite(inside)]
    if not len(inside):
        return float(every.max())
    top = float(inside.max()) + 0.35 * max(float(inside.max() - every.min()), 0.3)
    return float(every[every <= top].max())
