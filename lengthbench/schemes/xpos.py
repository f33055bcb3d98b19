"""xPos: RoPE whose pairs also decay with distance, the fast ones faster.

    q_i zeta_n^(i/B),  k_j zeta_n^(-j/B),  zeta_n = (2n/D + 0.4) / 1.4    pair n of a logit decays by zeta_n^((i-j)/B)

`decay` is B: the distance in tokens over which pair n falls to zeta_n. Exponents count from position 0, so a window's
length changes nothing; float32 then ends where the fastest pair's factor reaches 2^100, at 28,328 tokens for B = 512.
Sun et al. 2022, arXiv 2212.10554, section 2; code: microsoft/torchscale, xpos_relative_position.py, which counts from
the middle of the window instead (the same logits).
"""

import math

import torch
from torch import Tensor

from lengthbench import rotary
from lengthbench.scheme import Shape

LARGEST = 100 * math.log(2)


class XPos(rotary.Rotary):
    def __init__(self, shape: Shape, *, theta: float = 10000.0, decay: float = 512.0) -> None:
        super().__init__(shape, theta)
        self.need(decay=decay)
        self.decay = decay
        self.freqs = rotary.frequencies(self.rotated, theta)
        self.zeta = zeta(shape.head_width)
        self.hard_limit = int(decay * LARGEST / -math.log(float(self.zeta[0])))

    def rotate(self, q: Tensor, k: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = rotary.angles(pos, self.freqs)
        size = self.zeta.to(pos.device) ** (pos.double()[:, None] / self.decay)  # (T, D/2)
        return rotary.turn(q, cos * size, sin * size), rotary.turn(k, cos / size, sin / size)


def zeta(width: int) -> Tensor:
    """(D/2,) float64."""
    return (torch.arange(0, width, 2, dtype=torch.float64) / width + 0.4) / 1.4
