"""Sinusoidal positions: fixed sines and cosines of the position, added to the token embeddings.

    interleaved   PE[p, 2n] = sin(p 10000^(-2n/W)), PE[p, 2n+1] = cos(same)      Vaswani et al. 2017, section 3.5
    fairseq       [sin | cos] side by side, p 10000^(-n/(W/2-1)), a zero if W is odd

`layout=fairseq` is what the ALiBi paper's baseline used (fairseq/modules/sinusoidal_positional_embedding.py;
its constant shift of all positions by padding_idx + 1 is left out: attention cannot see it).
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from lengthbench.errors import UserError
from lengthbench.scheme import Scheme, Shape


def interleaved(pos: Tensor, width: int) -> Tensor:
    """(T,) positions -> (T, width) float64."""
    channel = torch.arange(0, width, 2, dtype=torch.float64, device=pos.device)
    angle = pos.double()[:, None] * 10000 ** (-channel / width)
    return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)[:, :width]


def fairseq(pos: Tensor, width: int) -> Tensor:
    """(T,) positions -> (T, width) float64."""
    half = width // 2
    channel = torch.arange(half, dtype=torch.float64, device=pos.device)
    angle = pos.double()[:, None] * 10000 ** (-channel / (half - 1))
    return F.pad(torch.cat([angle.sin(), angle.cos()], 1), (0, width % 2))


LAYOUTS = {"interleaved": interleaved, "fairseq": fairseq}


class Sinusoidal(Scheme):
    def __init__(self, shape: Shape, *, layout: str = "interleaved") -> None:
        super().__init__(shape)
        if layout not in LAYOUTS:
            raise UserError(f"scheme sinusoidal: layout={layout}; it is one of {', '.join(LAYOUTS)}")
        self.table = LAYOUTS[layout]

    def embed(self, x: Tensor, pos: Tensor) -> Tensor:
        return x + self.table(pos, x.shape[-1]).to(x.dtype)
