"""Rotary embedding: channel pairs of queries and keys turn by an angle that grows with position.

    pair n turns by p f_n,  f_n = theta^(-2n/r),  n = 0 .. r/2-1,  over the first r of D channels

Su et al. 2021, arXiv 2104.09864, eq. 15 and 34. `half` pairs (n, n + r/2) as Llama and NeoX do, `interleaved`
pairs (2n, 2n+1) as GPT-J does; one is the other up to a fixed order of channels.
"""

import torch
from torch import Tensor


def frequencies(rotary_width: int, theta: float) -> Tensor:
    """(r/2,) float64 f_n."""
    return theta ** (-torch.arange(0, rotary_width, 2, dtype=torch.float64) / rotary_width)


def angles(pos: Tensor, freqs: Tensor, scale: float = 1.0) -> tuple[Tensor, Tensor]:
    """(T,) positions, (r/2,) frequencies -> cos, sin (T, r/2) float64, times `scale`.

    Rounding the angle to float32 would cost 3e-3 in a logit at 131k tokens.
    """
    angle = pos.double()[:, None] * freqs.to(pos.device)
    return angle.cos() * scale, angle.sin() * scale


def turn(x: Tensor, cos: Tensor, sin: Tensor, layout: str = "half") -> Tensor:
    """Rotate the first 2 * cos.shape[-1] channels of x (..., T, D); the others pass through."""
    r = 2 * cos.shape[-1]
    exact = x.dtype if x.dtype.itemsize >= 4 else torch.float32
    cos, sin = cos.to(exact), sin.to(exact)
    if layout == "half":
        a, b = x[..., : r // 2], x[..., r // 2 : r]
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    else:
        a, b = x[..., 0:r:2], x[..., 1:r:2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    return torch.cat([turned.to(x.dtype), x[..., r:]], -1) if r < x.shape[-1] else turned.to(x.dtype)
