"""KERPLE, power: attention falls off with a power of distance, each head by two learned numbers.

    logit(i, j) = q_i k_j / sqrt(D) - r1 (i - j)^r2,   r1 >= 0.01,  0.01 <= r2 <= 2

r2 = 1 is ALiBi with a learned slope. Chi et al. 2022, arXiv 2205.09921, section 4; initial values (r1 from U(0, 1), r2
from U(0, 2)) and the bounds follow chijames/KERPLE, megatron/mpu/layers.py. One pair a head for all layers.
"""

import torch
from torch import Tensor, nn

from lengthbench.scheme import Scheme, Shape

LEAST = 0.01


class KerplePower(Scheme):
    learned = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.r1 = nn.Parameter(torch.rand(shape.heads))
        self.r2 = nn.Parameter(torch.rand(shape.heads) * 2)

    def distance_table(self, length: int) -> Tensor:
        with torch.no_grad():  # in the weights themselves: a clamped gradient would hold a head at the bound
            self.r1.clamp_(min=LEAST)
            self.r2.clamp_(LEAST, 2)
        d = torch.arange(length, dtype=torch.float64, device=self.r1.device)
        return -self.r1[:, None] * d ** self.r2[:, None]  # (H, L)
