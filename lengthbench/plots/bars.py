"""Bars of a sum and its two parts at each length: parts stacked from the zero line by their signs, the sum beside."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from lengthbench.plots import style, ticks
from lengthbench.plots.split import Part

LOWER = {"early_token": style.EARLY, "beyond_base": "#0072B2", "length_effect": "#dcdcdc", "content_use": "#009E73"}
"""Colour of each part."""
HATCH = {"length_effect": "/////"}
WIDE, ASIDE = 0.54, 0.4
"""Width of a bar, and how far right of its middle the sum stands; a length takes 1."""
LEAST = 0.01
"""Nats the axis spans at least either side of what it shows, so that noise does not look like an effect."""


def plot(axes: Axes, parts: dict[str, Part], total: Part, failed: np.ndarray) -> None:
    """The two `parts`, the first nearest to zero; the interval of the second; `total` as a diamond with its own."""
    (first, lower), (second, upper) = parts.items()
    slots = np.arange(len(total.nats))
    foot = np.where(lower.nats * upper.nats > 0, lower.nats, 0.0)
    for name, part, bottom in ((first, lower, np.zeros(len(slots))), (second, upper, foot)):
        heights = np.where(np.isfinite(part.nats), part.nats, 0.0)
        axes.bar(
            slots,
            heights,
            WIDE,
            bottom=bottom,
            color=LOWER[name],
            hatch=HATCH.get(name),
            edgecolor="#8a8a8a" if name in HATCH else "white",
            linewidth=0.4,
            label=name,
        )
    axes.vlines(slots, foot + upper.low, foot + upper.high, color=style.INK, linewidth=1.4, zorder=3)
    axes.vlines(slots + ASIDE, total.low, total.high, color=style.INK, linewidth=0.9, zorder=3)
    axes.plot(
        slots + ASIDE, total.nats, "D", color="white", markeredgecolor=style.INK, markersize=4, zorder=4, label="total"
    )
    axes.plot(slots[failed], np.zeros(failed.sum()), "x", color=style.INK, markersize=6, zorder=5, label="failed")
    axes.axhline(0, color=style.INK, linewidth=0.8, zorder=2)
    _limits(axes, [lower.nats, foot + upper.nats, foot + upper.low, foot + upper.high, total.low, total.high])


def _limits(axes: Axes, edges: list[np.ndarray]) -> None:
    values = np.concatenate([[0.0], *edges])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    short = max(2 * LEAST - (high - low), 0) / 2
    margin = 0.08 * (high - low + 2 * short)
    axes.set_ylim(low - short - margin, high + short + margin)
    axes.yaxis.set_major_locator(ticks.few())
    axes.yaxis.set_major_formatter(FuncFormatter(ticks.signed(axes.get_yticks().tolist())))
