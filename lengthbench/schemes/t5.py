"""T5 bias: a learned bias for each head and each bucket of distances, one table for all layers.

32 buckets, unidirectional: distances 0..15 have their own, 16..127 share 16 buckets spaced
logarithmically, everything from 113 on is bucket 31. So the bias saturates; it never runs out.

Raffel et al. 2020, arXiv 1910.10683, section 2.1; transformers, models/t5. The bias is added after the
1/sqrt(D) scale, which T5 itself leaves out.
"""

import math

import torch
from torch import Tensor, nn

from lengthbench.scheme import Scheme, Shape


def buckets(length: int, n_buckets: int = 32, max_distance: int = 128) -> Tensor:
    """(length,) bucket of each distance 0 .. length-1, looking back only."""
    exact = n_buckets // 2
    d = torch.arange(length)
    ratio = torch.log(d.clamp(min=1).double() / exact) / math.log(max_distance / exact)
    far = exact + (ratio * (n_buckets - exact)).long()
    return torch.where(d < exact, d, far.clamp(max=n_buckets - 1))


class T5(Scheme):
    learned = True

    def __init__(self, shape: Shape, *, buckets: int = 32, max_distance: int = 128) -> None:
        super().__init__(shape)
        self.max_distance = max_distance
        self.table = nn.Parameter(torch.randn(buckets, shape.heads) * shape.width**-0.5)

    def distance_table(self, length: int) -> Tensor:
        bucket = buckets(length, len(self.table), self.max_distance).to(self.table.device)
        return self.table[bucket].T  # (H, L)

    def warning(self) -> str | None:
        if self.shape.train_length >= self.max_distance:
            return None
        return (
            f"t5: the buckets up to distance {self.max_distance} stay untrained "
            f"with windows of {self.shape.train_length} tokens"
        )
