"""One model's lines in the ladder figure: losses, swapped contexts, best rung and horizon."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from lengthbench.plots import style, ticks
from lengthbench.plots.rungs import Ladder
from lengthbench.plots.scale import Scale


def scale(axes: Axes, y: Scale) -> None:
    """The y axis, with few ticks of equally many decimals."""
    y.apply(axes)
    axes.yaxis.set_major_locator(ticks.few())
    axes.yaxis.set_major_formatter(FuncFormatter(ticks.alike_in_step(axes.get_yticks().tolist())))


def plot(axes: Axes, ladder: Ladder, high: float) -> None:
    """The line with its interval, a ring at the best rung, and the swapped contexts dashed; `high`: the top edge."""
    line, nll, color = ladder.full, ladder.nll, ladder.full.ink.color
    kept = np.isfinite(nll)
    look = {"color": color, "marker": line.ink.marker, "markersize": 4.5, "markeredgecolor": "white"}
    axes.plot(line.lengths[kept], nll[kept], linewidth=1.6, markeredgewidth=0.5, zorder=3, label=line.name, **look)
    low, top = ladder.band()
    axes.fill_between(line.lengths[kept], low[kept], top[kept], color=color, alpha=0.14, linewidth=0, zorder=1)
    for i in np.flatnonzero(np.isposinf(nll[1:]) & kept[:-1]):  # no slope leads to infinity
        axes.plot(line.lengths[i : i + 2], [nll[i], high], color=color, linestyle=":", linewidth=1.2)
    if ladder.swap:
        own = np.isfinite(ladder.swap.column("nll"))
        dash = {"linestyle": style.DASHES["sliding"], "linewidth": 1.2, "color": color}
        axes.plot(ladder.swap.lengths[own], ladder.swap.column("nll")[own], label=f"{line.name}/swap", zorder=2, **dash)
    at = np.flatnonzero((line.lengths == ladder.best) & kept & (nll <= high))
    ring = {"markersize": 11, "markeredgewidth": 1.4, "markeredgecolor": color, "color": "none"}
    axes.plot(line.lengths[at], nll[at], "o", zorder=4, clip_on=False, label=f"{line.name}/best", **ring)


def mark_horizon(axes: Axes, ladder: Ladder, height: float, **how) -> None:
    """A point at the horizon and a line over its interval."""
    color = ladder.full.ink.color
    at = [] if ladder.horizon is None else [ladder.horizon]
    if np.isfinite([ladder.low, ladder.high]).all():
        axes.plot([ladder.low, ladder.high], [height] * 2, color=color, linewidth=2, alpha=0.6, **how)
    axes.plot(at, [height] * len(at), ladder.full.ink.marker, color=color, markersize=5, label="horizon", **how)
