"""p-RoPE: RoPE without its lowest frequencies; the pairs they turned carry content alone.

    f_n for the first floor(p D/2) pairs, 0 for the others; exponents over all D channels

`partial` is p. Not partial rotation, whose pairs are others and whose exponents run over the rotated channels.
Barbero et al. 2024, arXiv 2410.06205; `proportional` in transformers, modeling_rope_utils.py.
"""

from lengthbench import rotary
from lengthbench.scheme import Shape


class PRope(rotary.Rotary):
    def __init__(self, shape: Shape, *, theta: float = 10000.0, partial: float = 0.0) -> None:
        super().__init__(shape, theta)
        if not 0 < partial <= 1:
            raise self.refusal(
                f"partial={partial}; it needs the share of pairs that turn, for example p_rope:partial=0.75"
            )
        self.freqs = rotary.p_rope(self.rotated, theta, partial)
