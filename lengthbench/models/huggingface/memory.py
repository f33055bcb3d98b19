"""What scoring a window takes beside the weights, an upper estimate from the configuration.

activations   B T (12 W + 4 I + 4 H D)          residual copies, gate, up and down, queries to output
attention     B H T T for the plain way, a mask of T T (bytes and floats) where a window needs one
losses        ROWS x TILE, or all logits of a head of its own
"""

from typing import Any

from lengthbench.models.loss import ROWS, TILE

BIASED = ("bloom", "mpt")
"""Architectures with an attention of their own that makes the whole matrix."""


def estimate(config: Any, attention: str | None, n_fed: int, batch: int, dtype: str, full_rows: int) -> int:
    """Bytes. `full_rows`: rows of whole logits a window makes at once, 0 where the head is walked in tiles."""
    size = {"float64": 8, "float32": 4}.get(dtype, 2)
    width, heads = config.hidden_size, getattr(config, "num_attention_heads", None) or 1
    inner = _largest(config, ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"), 4 * width)
    head_width = getattr(config, "head_dim", None) or width // heads
    activations = batch * n_fed * (12 * width + 4 * inner + 4 * heads * head_width) * size
    square = batch * n_fed * n_fed
    if attention in (None, "eager") or config.model_type in BIASED or getattr(config, "alibi", False):
        # Scores, their softmax in float32 and back, a bias or mask.
        scratch = square * heads * (2 * size + 8) + square * 4
    elif _needs_mask(config, n_fed):
        scratch = square * (1 + max(size, 4))
    else:
        scratch = 0
    losses = 4 * ROWS * min(TILE, config.vocab_size) * 4 + batch * n_fed * width * size
    return activations + scratch + losses + batch * full_rows * config.vocab_size * (size + 8)


def _needs_mask(config: Any, n_fed: int) -> bool:
    window = getattr(config, "sliding_window", None)
    chunk = getattr(config, "attention_chunk_size", None)
    return any(w and n_fed > w for w in (window, chunk))


def _largest(config: Any, names: tuple[str, ...], default: int) -> int:
    values = [getattr(config, name, None) for name in names]
    return max((v for v in values if isinstance(v, int)), default=default)
