"""Losses of the scored rows only, without ever holding rows x vocabulary logits.

    nll = logsumexp_v(h W_v + b_v) - (h W_t + b_t)

The vocabulary is walked in tiles that stay in the cache, keeping a running log-sum-exp, the target's logit and
the largest logit; rows in slices, so scratch memory is ROWS x TILE whatever the length and the vocabulary.
Softcaps and scales of the model's own head are kept. Sums of exponentials are float32 or better.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

ROWS = 1024
TILE = 2048
"""Columns of the head at a time: larger tiles spill the cache."""


@dataclass(frozen=True, eq=False)
class Head:
    weight: Tensor
    """(V, W)"""
    bias: Tensor | None = None
    """(V,)"""
    scale: float = 1.0
    """Factor on the logits (Cohere, Granite)."""
    softcap: float | None = None
    """c in logits = c tanh(logits / c) (Gemma 2)."""

    @property
    def vocabulary(self) -> int:
        return len(self.weight)

    @property
    def device(self) -> torch.device:
        return self.weight.device

    def logits(self, hidden: Tensor, begin: int, end: int) -> Tensor:
        """(R, W) -> (R, end - begin), float32 or better, for tokens begin .. end-1."""
        bias = None if self.bias is None else self.bias[begin:end]
        out = F.linear(hidden, self.weight[begin:end], bias)
        out = out if out.dtype == torch.float64 else out.float()
        if self.scale != 1.0:
            out = out * self.scale
        return out if self.softcap is None else torch.tanh(out / self.softcap) * self.softcap


@dataclass(frozen=True, eq=False)
class NoHead:
    """For a network whose states are its logits already, because nothing is known of its head."""

    vocabulary: int
    device: torch.device

    def logits(self, hidden: Tensor, begin: int, end: int) -> Tensor:
        out = hidden[:, begin:end]
        return out if out.dtype == torch.float64 else out.float()


def score_rows(hidden: Tensor, targets: Tensor, head: Head | NoHead) -> tuple[Tensor, Tensor]:
    """Rows (R, W) and their targets (R,) -> losses (R,) in nats and whether the target came first (R,)."""
    parts = [_slice(h, t, head) for h, t in zip(hidden.split(ROWS), targets.split(ROWS), strict=True)]
    return torch.cat([nll for nll, _ in parts]), torch.cat([first for _, first in parts])


def _slice(hidden: Tensor, targets: Tensor, head: Head | NoHead) -> tuple[Tensor, Tensor]:
    total = largest = wanted = None
    for begin in range(0, head.vocabulary, TILE):
        end = min(begin + TILE, head.vocabulary)
        logits = head.logits(hidden, begin, end)
        inside = (targets >= begin) & (targets < end)
        place = (targets - begin).clamp(0, end - begin - 1)[:, None]
        own = logits.gather(1, place)[:, 0]
        top, lse = logits.amax(1), logits.logsumexp(1)
        if total is None or largest is None or wanted is None:
            total, largest, wanted = lse, top, torch.where(inside, own, torch.zeros_like(own))
        else:
            total, largest = torch.logaddexp(total, lse), torch.maximum(largest, top)
            wanted = torch.where(inside, own, wanted)
    assert total is not None and largest is not None and wanted is not None
    return total - wanted, wanted >= largest
