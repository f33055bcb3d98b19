"""KERPLE, logarithmic: attention falls off with the logarithm of distance, each head by two learned numbers.

    logit(i, j) = q_i k_j / sqrt(D) - r1 ln(1 + r2 (i - j)),   r1, r2 >= 0.01

Chi et al. 2022, arXiv 2205.09921, section 4; initial values (r1 from U(0, 2), r2 from U(0, 1)) and the bound follow
chijames/KERPLE, megatron/mpu/layers.py. One pair a head for all layers.
"""

import torch
from torch import Tensor, nn

from lengthbench.scheme import Scheme, Shape

LEAST = 0.01


class KerpleLog(Scheme):
    learned = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.r1 = nn.Parameter(torch.rand(shape.heads) * 2)
        self.r2 = nn.Parameter(torch.rand(shape.heads))

    def distance_table(self, length: int) -> Tensor:
        with torch.no_grad():  # in the weights themselves: a clamped gradient would hold a head at the bound
            for r in (self.r1, self.r2):
                r.clamp_(min=LEAST)
        d = torch.arange(length, dtype=torch.float64, device=self.r1.device)
        return -self.r1[:, None] * torch.log1p(self.r2[:, None] * d)  # (H, L)
