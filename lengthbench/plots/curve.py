"""One model's line in the perplexity figure, and the stretch of lengths that all lines cover."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from lengthbench.plots import caption, notes, style
from lengthbench.plots.scale import Scale
from lengthbench.plots.series import Series


def plot(axes: Axes, line: Series, y: Scale, muted: bool = False) -> None:
    """The line with its markers and its interval; `muted` for a line in the background."""
    values, lengths, color = line.column(y.column), line.lengths, style.MUTED if muted else line.ink.color
    drawable = np.where(np.isfinite(values) & (values > 0), values, np.nan)
    axes.plot(
        lengths,
        drawable,
        color=color,
        linestyle=style.DASHES.get(line.protocol, "-"),
        linewidth=0.8 if muted else 1.6,
        marker="" if muted else line.ink.marker,
        markersize=5.0 if np.isfinite(drawable).sum() > 1 else 7.0,
        markeredgecolor="white",
        markeredgewidth=0.5,
        zorder=2 if muted else 3,
        label=f"{line.name}/{line.protocol}",
    )
    if muted:
        return
    low, high = y.band(line)
    if np.isfinite(drawable).sum() > 1:
        axes.fill_between(lengths, low, high, color=color, alpha=0.16, linewidth=0, zorder=1)
    else:
        axes.vlines(lengths, low, high, color=color, linewidth=3, alpha=0.35, zorder=2)
    for i in np.flatnonzero(np.isposinf(values[1:])):
        if np.isfinite(drawable[i]):  # no slope leads to infinity: a dotted line says which way it went
            axes.plot(lengths[i : i + 2], [drawable[i], y.high], color=color, linestyle=":", linewidth=1.2)
    last = notes.stop_at(line, y)
    if last is not None:
        axes.plot(lengths[last], drawable[last], "x", color=color, markersize=8, markeredgewidth=1.6, zorder=5)


def span(lines: Sequence[Series]) -> tuple[float, float]:
    """Limits of the x axis: the measured lengths, and the one training length if it lies within a doubling."""
    known = measured(lines)
    shared = caption.trained(lines)
    known += [n for n in shared if len(shared) == 1 and caption.in_view(n, lines)]
    low, high = math.log2(min(known)), math.log2(max(known))
    margin = max(0.035 * (high - low), 0.08) if high > low else 0.5
    return 2 ** (low - margin), 2 ** (high + margin)


def measured(lines: Sequence[Series]) -> list[float]:
    """Lengths in the table, ascending."""
    return sorted({float(n) for line in lines for n in line.lengths})
