"""Causal attention with a bias that depends on distance only, in memory linear in the length.

    out_i = sum_j softmax_j(q_i k_j / sqrt(D) + table[h, i - j]) v_j,  j <= i

The bias matrix is Toeplitz, so it is never made. With t[h, x] laid out for x = j - i = -(L-1) .. L-1 and the
rows of a chunk of queries reversed, each row of the mask is the row above moved by one:

    chunk of n rows ending at e     row r is query e-1-r     mask[r, j] = t[h, L-e + r + j]

which is a strided view of t: no copy, O(H L) memory, exact, and gradients reach the table.

Where the bias falls, far keys weigh nothing. With logits of q k at most B in size, all keys from distance r on weigh

    sum_j exp(l_ij - l_ii) <= L exp(2 B + max_{d >= r} table[h, d] - table[h, 0])

against the query's own key. From where that is below the rounding of float32 (float64 in float64) they are not visited:

    keys      0   r   2r  3r
    queries   #                    rows that reach the start, chunk by chunk for all such heads
              # #                  rows below: one shape for all chunks of a head, so one call
                # #
                  # #
"""

import functools
import math

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 512
"""Query rows a call: the mask's scratch stays small and the kernel stays busy."""
BANDED = 8
"""Chunks of a window from which it pays to find out which keys weigh nothing."""


def attend(q: Tensor, k: Tensor, v: Tensor, table: Tensor | None, chunk: int = CHUNK) -> Tensor:
    """Queries (B, H, T, D), keys and values (B, H, S, D), table (H, S) or None -> (B, H, T, D).

    The queries are the last T of the S tokens.
    """
    if q.shape[2] < k.shape[2]:
        # Queries behind a past: a causal mask that is no triangle, so it is a bias of zeros.
        return _strided(q, k, v, q.new_zeros(1, k.shape[2]) if table is None else table, chunk)
    if table is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if q.device.type == "cuda":
        return _compiled_flex()(q, k, v, score_mod=_score_mod(table), block_mask=_causal(q.shape[2], q.device))
    far = q.shape[2] >= BANDED * chunk and not torch.is_grad_enabled()
    return (_banded if far else _strided)(q, k, v, table, chunk)


def route(table: bool, device: str) -> str:
    """Name of the way `attend` takes, recorded with every result."""
    if not table:
        return "sdpa-causal"
    return "flex" if device.startswith("cuda") else "sdpa-toeplitz"


def _strided(q: Tensor, k: Tensor, v: Tensor, table: Tensor, chunk: int) -> Tensor:
    length, toeplitz = table.shape[1], _toeplitz(table.to(q.dtype))
    past, out = length - q.shape[2], []
    for begin in range(past, length, chunk):
        end = min(begin + chunk, length)
        out.append(_rows(q[:, :, begin - past : end - past], k[:, :, :end], v[:, :, :end], toeplitz))
    return torch.cat(out, 2)


def _banded(q: Tensor, k: Tensor, v: Tensor, table: Tensor, chunk: int) -> Tensor:
    """`_strided` without the keys that weigh nothing."""
    length = table.shape[1]
    chunks = _reach(q, k, table).sub(1).div(chunk, rounding_mode="floor") + 1
    spans = (chunks * chunk).clamp(chunk, length)
    order = spans.argsort(descending=True, stable=True)  # heads that look at the same rows lie side by side
    q, k, v = q[:, order], k[:, order], v[:, order]
    toeplitz = _toeplitz(table[order].to(q.dtype))
    spans = spans[order].tolist()
    out = torch.empty_like(v)
    for begin in range(0, spans[0], chunk):
        end, n = min(begin + chunk, length), sum(span > begin for span in spans)
        out[:, :n, begin:end] = _rows(q[:, :n, begin:end], k[:, :n, :end], v[:, :n, :end], toeplitz[:n])
    for h, span in enumerate(spans):
        whole = (length - span) // chunk * chunk + span
        if whole > span:
            rows = q[:, h, span:whole].unflatten(1, (-1, chunk))  # (B, chunks, chunk, D)
            keys, values = (x[:, h].unfold(1, span + chunk, chunk).transpose(2, 3) for x in (k, v))
            out[:, h, span:whole] = _rows(rows, keys, values, toeplitz[h : h + 1]).flatten(1, 2)
        if whole < length:
            begin = whole - span
            some = slice(h, h + 1)
            out[:, some, whole:] = _rows(q[:, some, whole:], k[:, some, begin:], v[:, some, begin:], toeplitz[some])
    return out[:, order.argsort()]


def _reach(q: Tensor, k: Tensor, table: Tensor) -> Tensor:
    """(H,) distance from which on all keys together weigh less than rounding."""
    exact = torch.promote_types(q.dtype, torch.float32)
    largest = q.to(exact).norm(dim=-1).amax((0, 2)) * k.to(exact).norm(dim=-1).amax((0, 2)) / math.sqrt(q.shape[-1])
    least = table[:, 0] - 2 * largest + math.log(torch.finfo(exact).eps / table.shape[1])
    ahead = table.flip(1).cummax(1).values.flip(1)  # (H, L) the largest bias from there on
    return (~(ahead <= least[:, None])).sum(1)


def _toeplitz(table: Tensor) -> Tensor:
    """(H, L) by distance -> (H, 2L-1) by x = j - i."""
    future = table.new_full((table.shape[0], table.shape[1] - 1), float("-inf"))
    return torch.cat([table.flip(1), future], 1)


def _rows(q: Tensor, k: Tensor, v: Tensor, toeplitz: Tensor) -> Tensor:
    """Queries (B, H, n, D) that are the last n of the S keys (B, H, S, D) -> (B, H, n, D)."""
    heads, size = toeplitz.shape
    shape = (1, heads, q.shape[2], k.shape[2])
    first = toeplitz.storage_offset() + (size + 1) // 2 - k.shape[2]
    mask = toeplitz.as_strided(shape, (0, size, 1, 1), first)
    return F.scaled_dot_product_attention(q.flip(2), k, v, attn_mask=mask).flip(2)


def _score_mod(table: Tensor):
    def add_bias(score, batch, head, i, j):
        return score + table[head, (i - j).clamp(min=0)].to(score.dtype)

    return add_bias


@functools.lru_cache(maxsize=8)
def _causal(length: int, device: torch.device):
    from torch.nn.attention.flex_attention import create_block_mask

    return create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device=device)


@functools.lru_cache(maxsize=1)
def _compiled_flex():
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True)
