"""Losses of the scored rows only, without ever holding rows x vocabulary logits.

    nll = logsumexp_v(h W_v + b_v) - (h W_t + b_t)

The vocabulary is walked in tiles, keeping each tile's log-sum-exp, its largest logit and the target's logit if it
is there; rows in slices, so scratch memory is 2 x ROWS x TILE whatever the length and the vocabulary. Beside the
product a tile costs one fused log-softmax and two maxima, all into memory that is taken once:

    logsumexp_v(l) = max_v(l) - max_v(log_softmax(l))

Softcaps and scales of the model's own head are kept. Sums of exponentials are float32 or better.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

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

    def logits(self, hidden: Tensor, begin: int, end: int, out: Tensor | None = None) -> Tensor:
        """(R, W) -> (R, end - begin), float32 or better, for tokens begin .. end-1; in `out` if there is one."""
        weight = self.weight[begin:end].t()
        direct = out if out is not None and out.dtype == hidden.dtype else None
        if self.bias is None:
            made = torch.mm(hidden, weight, out=direct)
        else:
            made = torch.addmm(self.bias[begin:end], hidden, weight, out=direct)
        out = _exactly(made, out)
        if self.scale != 1.0:
            out *= self.scale
        return out if self.softcap is None else out.div_(self.softcap).tanh_().mul_(self.softcap)


@dataclass(frozen=True, eq=False)
class NoHead:
    """For a network whose states are its logits already, because nothing is known of its head."""

    vocabulary: int
    device: torch.device

    def logits(self, hidden: Tensor, begin: int, end: int, out: Tensor | None = None) -> Tensor:
        return _exactly(hidden[:, begin:end], out)


@torch.no_grad()
def score_rows(hidden: Tensor, targets: Tensor, head: Head | NoHead) -> tuple[Tensor, Tensor]:
    """Rows (R, W) and their targets (R,) -> losses (R,) in nats and whether the target came first (R,)."""
    cells = min(ROWS, len(hidden)) * min(TILE, head.vocabulary)
    scratch = hidden.new_empty(2, cells, dtype=_exact(hidden.dtype))
    parts = [_slice(h, t, head, scratch) for h, t in zip(hidden.split(ROWS), targets.split(ROWS), strict=True)]
    return torch.cat([nll for nll, _ in parts]), torch.cat([first for _, first in parts])


def _slice(hidden: Tensor, targets: Tensor, head: Head | NoHead, scratch: Tensor) -> tuple[Tensor, Tensor]:
    tops, sums = [], []
    wanted = scratch.new_zeros(len(hidden))
    for begin in range(0, head.vocabulary, TILE):
        end = min(begin + TILE, head.vocabulary)
        size = (len(hidden), end - begin)
        out, normal = (s[: size[0] * size[1]].view(size) for s in scratch)
        logits = head.logits(hidden, begin, end, out)
        inside = (targets >= begin) & (targets < end)
        own = logits.gather(1, (targets - begin).clamp(0, end - begin - 1)[:, None])[:, 0]
        wanted = torch.where(inside, own, wanted)
        top = logits.amax(1)
        peak = torch.log_softmax(logits, 1, out=normal).amax(1)
        tops.append(top)
        # A tile of -inf alone has no softmax, and adds nothing.
        sums.append(torch.where(top == -torch.inf, top, top - peak))
    return torch.stack(sums).logsumexp(0) - wanted, wanted >= torch.stack(tops).amax(0)


def _exact(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _exactly(logits: Tensor, out: Tensor | None) -> Tensor:
    """The logits in float32 or better, in `out` if there is one."""
    if out is None:
        return logits.to(_exact(logits.dtype))
    return out if logits is out else out.copy_(logits)
