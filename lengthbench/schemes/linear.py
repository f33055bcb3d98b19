"""Position interpolation: RoPE with all positions divided by a factor, so that more of them fit the trained range.

    f_n = theta^(-2n/r) / s

Chen et al. 2023, arXiv 2306.15595, eq. 3: a position divided by s is a frequency divided by s.
"""

from lengthbench import rotary
from lengthbench.scheme import Shape


class Linear(rotary.Rotary):
    def __init__(self, shape: Shape, *, theta: float = 10000.0, partial: float = 1.0, factor: float = 0.0) -> None:
        super().__init__(shape, theta, partial)
        self.need(factor=factor)
        self.freqs = rotary.frequencies(self.rotated, theta) / factor
