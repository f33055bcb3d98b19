"""Dynamic NTK: RoPE whose base grows with the window once that is longer than the training length.

    theta' = theta a^(r/(r-2)),  a = s max(L, L0)/L0 - (s - 1)

`factor` s is not the ratio of the lengths: s = 1 gives a = L/L0. `original` L0 is the training length unless given.
The rotation of every token depends on the window's own length, and on nothing that ran before.
Formula and code: jquesnelle/yarn, scaled_rope/LlamaDynamicScaledRotaryEmbedding.py.
"""

from torch import Tensor

from lengthbench import rotary
from lengthbench.scheme import Shape


class Dynamic(rotary.Rotary):
    prefix_stable = False

    def __init__(
        self, shape: Shape, *, theta: float = 10000.0, partial: float = 1.0, factor: float = 0.0, original: int = 0
    ) -> None:
        super().__init__(shape, theta, partial)
        original = original or shape.train_length
        self.need(factor=factor, original=original)
        self.need_pairs(2)
        self.params = {"theta": theta, "partial": partial, "factor": factor, "original": original}

    def frequencies(self, length: int) -> Tensor:
        theta, factor, original = (self.params[key] for key in ("theta", "factor", "original"))
        return rotary.dynamic(self.rotated, theta, factor, original, length)
