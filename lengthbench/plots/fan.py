"""Losses against length that fan out from the base length: base, cut and full, with the gaps between them filled.

The gap from base to cut is the early-token part, that from cut to full the part beyond the base length. By the
method `sliding` early tokens cost the gap between both protocols, and its shrinking is their part.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.ticker import FuncFormatter

from lengthbench.plots import bars, style, ticks
from lengthbench.plots.split import Split

LINES = {
    "base": {"color": style.GREY, "linestyle": (0, (1.2, 1.4)), "linewidth": 1.4},
    "cut": {"color": style.INK, "linestyle": style.DASHES["sliding"], "linewidth": 1.3},
    "sliding": {"color": style.INK, "linestyle": style.DASHES["sliding"], "linewidth": 1.3},
    "full": {"color": style.INK, "linestyle": "-", "linewidth": 1.6},
}


def losses(split: Split) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Lengths (n,) from the base length on, and the loss of each line at them."""
    total, early, beyond = (split.part(name) for name in ("total", "early_token", "beyond_base"))
    known = total.start[np.isfinite(total.start)]
    base = known[0] if len(known) else np.nan
    found = {"base": np.array([base, *total.start])}
    if split.method == "sliding":
        known = beyond.start[np.isfinite(beyond.start)]
        found["sliding"] = np.array([known[0] if len(known) else np.nan, *beyond.end])
    else:
        found["cut"] = np.array([base, *np.where(np.isfinite(early.end), early.end, beyond.start)])
    found["full"] = np.array([base, *total.end])
    return np.array([split.base, *split.lengths]), found


def plot(axes: Axes, split: Split) -> dict[str, float]:
    """Draw them; returns the last loss of each line that has one."""
    lengths, found = losses(split)
    color = split.line.ink.color
    if "cut" in found:
        for a, b, part in (("base", "cut", "early_token"), ("cut", "full", "beyond_base")):
            axes.fill_between(lengths, found[a], found[b], color=_pale(bars.LOWER[part]), linewidth=0, zorder=1)
    else:
        axes.fill_between(lengths, found["sliding"], found["full"], color=_pale(style.EARLY), linewidth=0, zorder=1)
    for name, values in found.items():
        kept = np.isfinite(values)
        own = {"color": color, "marker": split.line.ink.marker, "markersize": 4} if name == "full" else {}
        axes.plot(
            lengths[kept],
            values[kept],
            **{**LINES[name], **own},
            markeredgecolor="white",
            markeredgewidth=0.5,
            label=name,
            zorder=3,
        )
    values = np.concatenate(list(found.values()))
    values = values[np.isfinite(values)]
    if len(values):
        low, high = float(values.min()), float(values.max())
        margin = max(0.1 * (high - low), bars.LEAST - (high - low) / 2, 0)
        axes.set_ylim(low - margin, high + margin)
        axes.yaxis.set_major_locator(ticks.few())
        axes.yaxis.set_major_formatter(FuncFormatter(ticks.alike_in_step(axes.get_yticks().tolist())))
    return {name: float(v[np.isfinite(v)][-1]) for name, v in found.items() if np.isfinite(v).any()}


def _pale(color: str) -> str:
    """Opaque, so that a gap that turns back lies on the first instead of mixing with it."""
    red, green, blue = (1 - 0.3 * (1 - c) for c in to_rgb(color))
    return to_hex((red, green, blue))
