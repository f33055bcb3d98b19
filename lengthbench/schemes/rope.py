"""RoPE: queries and keys are rotated by their position, so a logit sees only their distance.

`theta` is the base of the frequencies, `partial` the share of channels that rotate (NeoX: 0.25).
Su et al. 2021, arXiv 2104.09864; see rotary.py for the formula.
"""

from lengthbench import rotary
from lengthbench.scheme import Shape


class Rope(rotary.Rotary):
    def __init__(self, shape: Shape, *, theta: float = 10000.0, partial: float = 1.0) -> None:
        super().__init__(shape, theta, partial)
        self.freqs = rotary.frequencies(self.rotated, theta)
