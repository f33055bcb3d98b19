"""ALiBi: attention falls off linearly with distance, each head with its own slope.

    logit(i, j) = q_i k_j / sqrt(D) - m_h (i - j)

Press et al. 2022, arXiv 2108.12409, section 3; slopes for head counts that are not a power of two follow
ofirpress/attention_with_linear_biases, fairseq/models/transformer.py.
"""

import torch
from torch import Tensor

from lengthbench.scheme import Scheme, Shape


def slopes(heads: int) -> list[float]:
    """m_h, one for each head: 2^(-8h/H) for H a power of two, h = 1..H.

    Otherwise the n = largest power of two below H come first, then every other slope of 2n.
    """
    n = 1 << (heads.bit_length() - 1)
    if n == heads:
        return [2 ** (-8 * h / heads) for h in range(1, heads + 1)]
    return slopes(n) + slopes(2 * n)[0::2][: heads - n]


class Alibi(Scheme):
    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self.slopes = slopes(shape.heads)

    def distance_table(self, length: int) -> Tensor:
        m = torch.tensor(self.slopes, dtype=torch.float64)
        return -m[:, None] * torch.arange(length, dtype=torch.float64)  # (H, L)
