"""Shades of a map's cells: a rate from light to dark, a gain in two colours away from zero; and the words in a cell.

Lightness falls with the rate, so grey print keeps the order (ColorBrewer's Blues). A gain's sign is printed in the
cell, because grey print keeps only its size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb

from lengthbench.plots import reach, style
from lengthbench.plots.search import Search

NOISE = "#f4f4f4"
TWO_WAYS = LinearSegmentedColormap.from_list("two ways", ["#7f3b08", "#e08214", NOISE, "#6baed6", "#08306b"])
LEAST = 0.1
"""Nats either side of zero that the colours of a gain span at least, so that noise stays pale."""


@dataclass(frozen=True)
class Shade:
    column: str
    """exact_rate or evidence_gain."""
    limit: float
    """The value, and for a gain minus that value, with the last colour."""

    @property
    def signed(self) -> bool:
        return self.column == "evidence_gain"

    def color(self, value: float) -> str:
        share = min(max(value / self.limit, -1.0), 1.0)
        if self.signed:
            return to_hex(TWO_WAYS(0.5 + 0.5 * share))
        return to_hex(colormaps["Blues"](0.04 + 0.92 * max(share, 0.0)))

    def words(self, value: float, unit: bool) -> str:
        """The value as it stands in a cell, with its unit where there is room."""
        if not self.signed:
            return reach.percent(value) + (" %" if unit else "")
        size = abs(value)
        told = f"{size:.{2 if size < 0.995 else 1 if size < 9.95 else 0}f}" if size < 1000 else style.power(size, 0)
        return told if not told.strip("0.") else ("−" if value < 0 else "+") + told

    def plain(self, search: Search) -> np.ndarray:
        """(P, L) bool: cells to hatch, whose value is not surely more than nothing."""
        return search.gains == 0 if self.signed else search.beats == 0

    def finding(self, search: Search, why: bool = True) -> str:
        return reach.gain(search, why) if self.signed else reach.label(search, why)


def on(color: str) -> str:
    """Black or white words, whichever can be read better on the colour (relative luminance, WCAG 2.1)."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return "white" if float(linear @ [0.2126, 0.7152, 0.0722]) < 0.22 else style.INK


def rate() -> Shade:
    return Shade("exact_rate", 1.0)


def gain(searches: Sequence[Search]) -> Shade:
    """One scale for all maps, which a few huge values do not bleach: up to the 95th percentile, rounded up."""
    values = np.concatenate([search.numbers("evidence_gain").ravel() for search in searches])
    top = max(float(np.percentile(np.abs(values[np.isfinite(values)]), 95)), LEAST)
    power = 10.0 ** math.floor(math.log10(top))
    return Shade("evidence_gain", next(s * power for s in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if s * power >= top * 0.999))
