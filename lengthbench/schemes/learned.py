"""Learned absolute positions: a trained vector for each position, and nothing beyond the last one.

`policy` says what happens beyond: `error` (the default: such lengths are unsupported), `clamp` (the last
vector again and again) or `interpolate` (the table stretched over the window). GPT-2, OPT, BERT.
"""

import torch
from torch import Tensor, nn

from lengthbench.errors import UserError
from lengthbench.scheme import Scheme, Shape


class Learned(Scheme):
    learned = True

    def __init__(self, shape: Shape, *, policy: str = "error") -> None:
        super().__init__(shape)
        if policy not in ("error", "clamp", "interpolate"):
            raise UserError(f"scheme learned: policy={policy}; it is one of error, clamp, interpolate")
        self.policy = policy
        self.hard_limit = shape.train_length if policy == "error" else None
        self.prefix_stable = policy != "interpolate"
        self.table = nn.Parameter(torch.randn(shape.train_length, shape.width) * shape.width**-0.5)

    def embed(self, x: Tensor, pos: Tensor) -> Tensor:
        last = len(self.table) - 1
        if self.policy == "interpolate" and pos[-1] > last:
            place = pos.double() * last / pos[-1]
            low = place.long().clamp(max=last - 1)
            part = (place - low).to(self.table.dtype)[:, None]
            rows = self.table[low] * (1 - part) + self.table[low + 1] * part
        else:
            assert self.policy != "error" or pos[-1] <= last, "the engine refuses windows over hard_limit"
            rows = self.table[pos.clamp(max=last)]
        # Stored at the scale of the token embeddings, which the decoder multiplies by sqrt(width) too.
        return x + rows * self.shape.width**0.5
