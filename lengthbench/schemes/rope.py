"""RoPE: queries and keys are rotated by their position, so a logit sees only their distance.

`theta` is the base of the frequencies, `partial` the share of channels that rotate (NeoX: 0.25).
Su et al. 2021, arXiv 2104.09864; see rotary.py for the formula.
"""

from torch import Tensor

from lengthbench.errors import UserError
from lengthbench.rotary import angles, frequencies, turn
from lengthbench.scheme import Scheme, Shape


class Rope(Scheme):
    def __init__(self, shape: Shape, *, theta: float = 10000.0, partial: float = 1.0) -> None:
        super().__init__(shape)
        r = int(shape.head_width * partial)
        if theta <= 0 or not 0 < partial <= 1 or r < 2 or r % 2:
            raise UserError(
                f"scheme rope: theta={theta}, partial={partial} rotates {r} of {shape.head_width} channels; "
                "theta must be positive and the rotated channels an even number from 2 on"
            )
        self.freqs = frequencies(r, theta)

    def rotate(self, q: Tensor, k: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = angles(pos, self.freqs)
        return turn(q, cos, sin), turn(k, cos, sin)
