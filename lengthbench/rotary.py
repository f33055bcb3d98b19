"""Rotary embedding: channel pairs of queries and keys turn by an angle that grows with position.

    pair n turns by p f_n,  f_n = theta^(-2n/r),  n = 0 .. r/2-1,  over the first r of D channels

Su et al. 2021, arXiv 2104.09864, eq. 15 and 34. `half` pairs (n, n + r/2) as Llama and NeoX do, `interleaved`
pairs (2n, 2n+1) as GPT-J does; one is the other up to a fixed order of channels. The scalings below change f_n, some
also the size of cos and sin; each is cited in the file of its scheme.
"""

import math
import re
from collections.abc import Sequence

import torch
from torch import Tensor

from lengthbench.errors import UserError
from lengthbench.scheme import Scheme, Shape


def frequencies(rotary_width: int, theta: float) -> Tensor:
    """(r/2,) float64 f_n."""
    return theta ** (-torch.arange(0, rotary_width, 2, dtype=torch.float64) / rotary_width)


def ntk(rotary_width: int, theta: float, factor: float) -> Tensor:
    """(r/2,) float64, base theta s^(r/(r-2)): the highest frequency stays, the lowest is divided by s."""
    return frequencies(rotary_width, theta * factor ** (rotary_width / (rotary_width - 2)))


def dynamic(rotary_width: int, theta: float, factor: float, original: int, length: int) -> Tensor:
    """(r/2,) float64 for a window of `length`: NTK by a = s max(L, L0)/L0 - (s - 1)."""
    return ntk(rotary_width, theta, factor * max(length, original) / original - (factor - 1))


def yarn(
    rotary_width: int,
    theta: float,
    factor: float,
    original: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    truncate: bool = True,
) -> Tensor:
    """(r/2,) float64: f_n where a pair turns over `beta_fast` times in L0 tokens, f_n / s under `beta_slow` times.

    In between a ramp, linear in n as all code has it (the paper's is linear in the number of turns).
    """

    def pair(turns: float) -> float:
        return rotary_width * math.log(original / (2 * math.pi * turns)) / (2 * math.log(theta))

    low, high = pair(beta_fast), pair(beta_slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rotary_width - 1)
    high += 0.001 if low == high else 0
    ramp = ((torch.arange(rotary_width // 2, dtype=torch.float64) - low) / (high - low)).clamp(0, 1)
    plain = frequencies(rotary_width, theta)
    return plain * (1 - ramp) + plain / factor * ramp


def yarn_scale(factor: float, mscale: float | None = None, mscale_all_dim: float | None = None) -> float:
    """A = 0.1 ln s + 1; with both `mscale` of DeepSeek's configurations the ratio of 0.1 m ln s + 1."""
    if factor <= 1:
        return 1.0
    if mscale and mscale_all_dim:
        return (0.1 * mscale * math.log(factor) + 1) / (0.1 * mscale_all_dim * math.log(factor) + 1)
    return 0.1 * math.log(factor) + 1


def longrope(rotary_width: int, theta: float, factors: Sequence[float]) -> Tensor:
    """(r/2,) float64: each f_n divided by a number of its own."""
    return frequencies(rotary_width, theta) / torch.tensor(factors, dtype=torch.float64)


def longrope_scale(factor: float, original: int) -> float:
    """A = sqrt(1 + ln s / ln L0)."""
    return math.sqrt(1 + math.log(factor) / math.log(original)) if factor > 1 else 1.0


def llama3(rotary_width: int, theta: float, factor: float, original: int, low: float, high: float) -> Tensor:
    """(r/2,) float64: f_n at wavelengths below L0/high, f_n / s above L0/low, a blend of both in between."""
    plain = frequencies(rotary_width, theta)
    kept = ((original * plain / (2 * math.pi) - low) / (high - low)).clamp(0, 1)
    return plain * (kept + (1 - kept) / factor)


def p_rope(rotary_width: int, theta: float, share: float) -> Tensor:
    """(r/2,) float64: the highest floor(share r/2) frequencies, zeros behind."""
    plain = frequencies(rotary_width, theta)
    plain[int(share * rotary_width // 2) :] = 0
    return plain


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


class Rotary(Scheme):
    """A scheme that turns pairs by position; its file says by which frequencies, for a checkpoint as for a decoder."""

    freqs: Tensor
    """(r/2,) float64; where they depend on the window's length, `frequencies` is overridden instead."""
    attention_scale = 1.0
    """A: cos and sin of queries and of keys are multiplied by it, so logits by its square."""

    def __init__(self, shape: Shape, theta: float, partial: float = 1.0) -> None:
        super().__init__(shape)
        self.rotated = r = int(shape.head_width * partial)
        if theta <= 0 or not 0 < partial <= 1 or r < 2 or r % 2:
            raise self.refusal(
                f"theta={theta}, partial={partial} rotates {r} of {shape.head_width} channels; "
                "theta must be positive and the rotated channels an even number from 2 on"
            )

    def frequencies(self, length: int) -> Tensor:
        """(r/2,) float64 for a window of `length` tokens."""
        return self.freqs

    def rotate(self, q: Tensor, k: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        cos, sin = angles(pos, self.frequencies(len(pos)), self.attention_scale)
        return turn(q, cos, sin), turn(k, cos, sin)

    def need(self, **values: float) -> None:
        """Refuse what is not above 0; 0 is the default of what has none."""
        for key, value in values.items():
            if value <= 0:
                article = "an" if key[0] in "aeiou" else "a"
                raise self.refusal(f"it needs {article} {key} above 0{f', not {value}' if value else ''}")

    def need_pairs(self, pairs: int) -> None:
        if self.rotated < 2 * pairs:
            raise self.refusal(f"{self.rotated} channels rotate; it needs {2 * pairs} at least")

    def refusal(self, why: str) -> UserError:
        file = re.split(r"[./\\]", type(self).__module__.removesuffix(".py"))[-1]
        return UserError(f"scheme {file}: {why}")
