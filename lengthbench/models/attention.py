"""Causal attention with a bias that depends on distance only, in memory linear in the length.

    out_i = sum_j softmax_j(q_i k_j / sqrt(D) + table[h, i - j]) v_j,  j <= i

The bias matrix is Toeplitz, so it is never made. With t[h, x] laid out for x = j - i = -(L-1) .. L-1 and the
rows of a chunk of queries reversed, each row of the mask is the row above moved by one:

    chunk of n rows ending at e     row r is query e-1-r     mask[r, j] = t[h, L-e + r + j]

which is a strided view of t: no copy, O(H L) memory, exact, and gradients reach the table.
"""

import functools

import torch
from torch import Tensor
from torch.nn import functional as F

CHUNK = 512
"""Query rows a call: the mask's scratch stays small and the kernel stays busy."""


def attend(q: Tensor, k: Tensor, v: Tensor, table: Tensor | None, chunk: int = CHUNK) -> Tensor:
    """Queries, keys, values (B, H, T, D), table (H, T) or None -> (B, H, T, D)."""
    if table is None:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    if q.device.type == "cuda":
        return _compiled_flex()(q, k, v, score_mod=_score_mod(table), block_mask=_causal(q.shape[2], q.device))
    return _strided(q, k, v, table, chunk)


def route(table: bool, device: str) -> str:
    """Name of the way `attend` takes, recorded with every result."""
    if not table:
        return "sdpa-causal"
    return "flex" if device.startswith("cuda") else "sdpa-toeplitz"


def _strided(q: Tensor, k: Tensor, v: Tensor, table: Tensor, chunk: int) -> Tensor:
    heads, length = table.shape
    table = table.to(q.dtype)
    future = table.new_full((heads, length - 1), float("-inf"))
    toeplitz = torch.cat([table.flip(1), future], 1)  # (H, 2L-1), by x = j - i
    out = []
    for begin in range(0, length, chunk):
        end = min(begin + chunk, length)
        mask = toeplitz.as_strided((1, heads, end - begin, end), (0, 2 * length - 1, 1, 1), length - end)
        rows = q[:, :, begin:end].flip(2)
        out.append(F.scaled_dot_product_attention(rows, k[:, :, :end], v[:, :, :end], attn_mask=mask).flip(2))
    return torch.cat(out, 2)


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
