"""NTK-aware scaling: RoPE with a larger base, which slows the low frequencies and leaves the highest alone.

    theta' = theta s^(r/(r-2)),  so f_0 = 1 and the lowest frequency is divided by s

r is the number of rotated channels. Formula and code: jquesnelle/yarn, scaled_rope/LlamaNTKScaledRotaryEmbedding.py.
"""

from lengthbench import rotary
from lengthbench.scheme import Shape


class Ntk(rotary.Rotary):
    def __init__(self, shape: Shape, *, theta: float = 10000.0, partial: float = 1.0, factor: float = 0.0) -> None:
        super().__init__(shape, theta, partial)
        self.need(factor=factor)
        self.need_pairs(2)
        self.freqs = rotary.ntk(self.rotated, theta, factor)
