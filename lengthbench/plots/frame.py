"""The frame of a figure with one pair of axes: from lengths and values to places on the page."""

import math
from dataclasses import dataclass

from lengthbench.plots.scale import Scale


@dataclass(frozen=True)
class Frame:
    """Where lengths and values lie on the figure, in inches."""

    left: float
    bottom: float
    width: float
    height: float
    shortest: float
    longest: float
    """Limits of the x axis, in tokens."""
    y: Scale

    def x(self, length: float) -> float:
        return self.left + self.width * math.log2(length / self.shortest) / math.log2(self.longest / self.shortest)

    def at(self, length: float, value: float) -> tuple[float, float]:
        return self.x(length), self.bottom + self.height * self.y.fraction(value)
