"""Sandwich: the inner product of two sinusoidal positions as a bias, each head with its own weight, nothing learned.

    logit(i, j) = q_i k_j / sqrt(D) + (sum_n cos((i - j) 10000^(-2n/d)) - d/2) H/(8h),   h = 1..H

Not monotone in distance. `width` is d; the d/2 numbers n count from `first`: 0 as in the paper's listing, 1 as in
NVIDIA/NeMo, sandwich_relative_position_embedding.py. Subtracting d/2 changes no softmax and makes distance 0 cost 0.
Chi et al. 2023, arXiv 2212.10356.
"""

import torch
from torch import Tensor

from lengthbench.errors import UserError
from lengthbench.scheme import Scheme, Shape


class Sandwich(Scheme):
    def __init__(self, shape: Shape, *, width: int = 128, first: int = 0) -> None:
        super().__init__(shape)
        if width < 2 or width % 2 or first not in (0, 1):
            raise UserError(
                f"scheme sandwich: width={width}, first={first}; width must be even from 2 on, and first 0 or 1"
            )
        self.width, self.first = width, first

    def distance_table(self, length: int) -> Tensor:
        n = torch.arange(self.first, self.first + self.width // 2, dtype=torch.float64)
        d = torch.arange(length, dtype=torch.float64)
        kernel = torch.outer(d, 10000 ** (-2 * n / self.width)).cos().sum(1) - self.width / 2  # (L,)
        h = torch.arange(1, self.shape.heads + 1, dtype=torch.float64)
        return kernel * (self.shape.heads / (8 * h))[:, None]  # (H, L)
