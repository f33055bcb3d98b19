"""The y axis of the perplexity figure: the quantity, the limits, and from where on values leave at the top.

Perplexity of one tokenizer says nothing about another's, so models of several tokenizers share bits per byte.
Perplexity is the exp of a mean loss, so its axis is logarithmic; bits per byte are that mean, so theirs is linear.

A model that explodes would squash all others. Values above the ceiling are cut off and told in words:

    ceiling = 12 x the median over lines of each line's best value, if that cuts anything above 30 x
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from lengthbench.plots import ticks
from lengthbench.plots.series import Series

KEEP, TOLERATE = 12.0, 30.0
"""Times the typical best value (perplexity): what stays in view, and how much may go before anything is cut."""

BITS_PER_NAT = 1 / math.log(2)
"""The same e-folds for bits per byte, as if a token were a byte; longer tokens only make the cut more lenient."""


@dataclass(frozen=True)
class Scale:
    column: str
    """ppl or bits_per_byte."""
    low: float
    high: float
    """The axis runs from low to high, in units of the column."""

    @property
    def log(self) -> bool:
        return self.column == "ppl"

    @property
    def title(self) -> str:
        return "perplexity per token (log scale)" if self.log else "bits per byte"

    def fraction(self, value: float) -> float:
        """Height of a value above the foot of the axis, in heights of the axis; above 1 it is cut off."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def band(self, line: Series) -> tuple[np.ndarray, np.ndarray]:
        """The interval of nll (n,) in units of the column: exp for ppl, in proportion for bits per byte."""
        low, high = line.column("ci_low"), line.column("ci_high")
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            if self.log:
                return np.exp(low), np.exp(high)
            per_nat = line.column("bits_per_byte") / line.column("nll")
            return low * per_nat, high * per_nat

    def apply(self, axes: Axes) -> None:
        axes.set_yscale("log" if self.log else "linear")
        axes.set_ylim(self.low, self.high)
        shown = ticks.log_ticks(self.low, self.high) if self.log else []
        axes.yaxis.set_major_locator(FixedLocator(shown) if self.log else MaxNLocator(5))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(ticks.plain if not self.log else ticks.alike(shown)))
        axes.yaxis.set_minor_formatter(NullFormatter())


def choose(lines: Sequence[Series]) -> Scale | None:
    """The axis for `lines`, or None where they have no finite value."""
    tokenizers = {name for line in lines for name in line.words("tokenizer")}
    column = "bits_per_byte" if len(tokenizers) > 1 else "ppl"
    to, back = (np.log, np.exp) if column == "ppl" else (lambda v: v, lambda v: v)
    own = [line.column(column) for line in lines]
    own = [values[np.isfinite(values) & (values > 0)] for values in own]
    own = [to(values) for values in own if len(values)]
    if not own:
        return None
    values = np.concatenate(own)
    ceiling = _ceiling(values, np.array([v.min() for v in own]), 1.0 if column == "ppl" else BITS_PER_NAT)
    shown = values[values <= ceiling]
    bands = [edge for line in lines for edge in Scale(column, 1, 2).band(line)]
    edges = np.concatenate(bands)
    edges = to(edges[np.isfinite(edges) & (edges > 0)])
    # A wide interval may widen the view, a little; a huge one may not flatten the lines.
    slack = max(0.25, 0.25 * float(np.ptp(shown)))
    near = edges[(edges >= shown.min() - slack) & (edges <= min(ceiling, shown.max() + slack))]
    seen = np.concatenate([shown, near])
    low, high = float(seen.min()), float(seen.max())
    middle, half = (low + high) / 2, max((high - low) / 2, 0.05)
    cut = bool((values > ceiling).any())
    return Scale(column, float(back(middle - 1.14 * half)), float(back(middle + (1.04 if cut else 1.1) * half)))


def _ceiling(values: np.ndarray, best: np.ndarray, unit: float) -> float:
    """The largest value to keep in view; logs of perplexity, or bits per byte with `unit` to the e-fold."""
    typical = float(np.median(best))
    if values.max() <= typical + unit * math.log(TOLERATE):
        return float(values.max())
    # A line that is steadily worse is no explosion: it stays, unless it starts beyond everything tolerated.
    steady = best[best <= typical + unit * math.log(TOLERATE)]
    return max(typical + unit * math.log(KEEP), float(steady.max()) + unit * math.log(2))
