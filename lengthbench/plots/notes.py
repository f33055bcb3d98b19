"""What a line cannot show, in words: values beyond the top edge, and lengths without a value."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lengthbench.plots import style
from lengthbench.plots.scale import Scale
from lengthbench.plots.series import Series


@dataclass(frozen=True)
class Exit:
    """Where a line leaves the view at the top."""

    length: float
    """Where it crosses the edge, between two measured lengths."""
    words: str
    """The line's name, and its first and last value beyond the edge."""
    short: str
    """The last of them alone."""


def label(line: Series, lines: Sequence[Series]) -> str:
    """The line's name, with its protocol unless that is the model's first."""
    first = next(other for other in lines if other.key == line.key)
    return line.name if line is first else f"{line.name}, {line.protocol}"


def exit_of(line: Series, scale: Scale, name: str) -> Exit | None:
    """The first crossing of the top edge and the values that lie beyond: `RoPE: 1,528 at 16384`."""
    y = line.column(scale.column)
    beyond = np.flatnonzero(y > scale.high)
    if not len(beyond):
        return None
    first, last = int(beyond[0]), int(beyond[-1])
    told = [f"{style.number(y[i])} at {line.lengths[i]:.0f}" for i in dict.fromkeys((first, last))]
    if len(told) > 1 and math.isinf(y[first]):
        told = [f"infinite from {line.lengths[first]:.0f} on"]
    return Exit(_crossing(line.lengths, y, first, scale), f"{name}: {', '.join(told)}", told[-1])


def _crossing(lengths: np.ndarray, y: np.ndarray, first: int, scale: Scale) -> float:
    if first == 0 or not math.isfinite(y[first]) or not math.isfinite(y[first - 1]):
        return float(lengths[first])
    a, b = scale.fraction(y[first - 1]), scale.fraction(y[first])
    x0, x1 = math.log2(lengths[first - 1]), math.log2(lengths[first])
    return 2 ** (x0 + (x1 - x0) * (1 - a) / (b - a))


def stops(line: Series) -> list[str]:
    """Why lengths have no value, a phrase a reason: `no positions beyond 256`, `out of memory from 8192 on`.

    Too little text is no property of the model, see `too_short`.
    """
    return [_why(line, status, line.status == status) for status in dict.fromkeys(line.status[line.failed])]


def stop_at(line: Series, scale: Scale) -> int | None:
    """Row of the last value before the first length that failed: where the cross stands. None if there is neither."""
    known = np.flatnonzero(np.isfinite(line.column(scale.column)))
    if not line.failed.any() or not len(known):
        return None
    before = known[known < int(line.failed.argmax())]
    return int(before[-1] if len(before) else known[0])


def ends_in_view(line: Series, scale: Scale) -> bool:
    """Whether the line runs to its last length below the top edge, so that its name can stand there."""
    values = line.column(scale.column)
    known = np.flatnonzero(~np.isnan(values))
    last = int(known[-1])
    return bool(values[last] <= scale.high and not line.failed[last + 1 :].any())


def _why(line: Series, status: str, where: np.ndarray) -> str:
    first = line.lengths[where][0]
    to_the_end = bool(where[int(np.argmax(where)) :].all()) and where.sum() > 1
    place = f"from {first:.0f} on" if to_the_end else "at " + ", ".join(f"{n:.0f}" for n in line.lengths[where])
    if status == "unsupported":
        fed = line.lengths[line.status == "ok"]
        trained = line.train_length
        # A table of positions ends at the training length; where the rows do not bear that out, nothing is claimed.
        if trained and trained < first and (not len(fed) or fed.max() <= trained):
            return f"no positions beyond {trained:.0f}"
    words = {"oom": "out of memory", "nonfinite": "no finite loss", "error": "failed"}
    return f"{words.get(status, status)} {place}"


def too_short(lines: Sequence[Series]) -> str | None:
    """The lengths that the text cannot fill, or None."""
    found = {n for line in lines for n in line.lengths[line.status == "too_short"]}
    return f"The text is too short for {', '.join(f'{n:.0f}' for n in sorted(found))}." if found else None
