"""transformers' cache of keys and values, cut back to what the next window shares with the one before.

Only caches that keep every token can be cut: those of sliding windows have thrown away what going back would need.
Whether an architecture's cache gives what one pass gives is tried, not believed.
"""

import inspect
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lengthbench.models.huggingface.quiet import quiet
from lengthbench.trials import Trial

SIZE, SHARED = 24, 11
"""Tokens of the windows that a cache is tried on, and how many of them two have in common."""
CLOSE = 1e-3
"""Nats that the loss of a random token may differ in the precision the model runs in."""


class Past:
    def __init__(self) -> None:
        self.cache: Any = None
        self.length = 0
        """Tokens in it."""

    def cut(self, length: int) -> None:
        if length == 0:
            self.cache = None
        elif length < self.length:
            self.cache.crop(length - self.length)  # a negative number removes so many in every transformers 5
        self.length = length

    def extend(self, network: Any, tokens: Tensor) -> Tensor:
        """Tokens (1, T) behind what was fed -> hidden states (1, T, W)."""
        from transformers import DynamicCache

        if self.cache is None:
            self.cache = DynamicCache(config=network.config)
        self.length += tokens.shape[1]
        return network(input_ids=tokens, use_cache=True, **{_argument(network): self.cache})[0]


def _argument(network: Any) -> str:
    """The cache's name among the arguments; transformers is renaming it."""
    return "cache" if "cache" in inspect.signature(network.forward).parameters else "past_key_values"


def works(model: Any) -> bool:
    """Whether going back gives `model` the losses of whole passes; False for whatever goes wrong on the way."""
    dice = np.random.default_rng(0)
    size = min(SIZE, model.card.limit or SIZE)
    if size <= SHARED + 2:
        return False
    most = min(model.config.vocab_size, model.tokenizer.vocabulary)
    first, second = dice.integers(0, most, (2, size))
    second[:SHARED] = first[:SHARED]
    trials = [Trial(t, np.arange(SHARED + 1, size)) for t in (first, second)]
    try:
        with quiet(), torch.inference_mode():
            probe = Past()
            model.hidden(torch.from_numpy(first[None, :4]).to(model.device), probe)
            if not _keeps_everything(probe.cache):
                return False
        chained = model.score_chain(trials, (0, SHARED))
        plain = [model.score([t])[0] for t in trials]
    except Exception:  # each architecture fails in its own way; the plain way remains
        return False
    exact = CLOSE if model.dtype == "float32" else 50 * CLOSE
    return all(np.abs(a.nll - b.nll).max() < exact for a, b in zip(chained, plain, strict=True))


def _keeps_everything(cache: Any) -> bool:
    """Whether every layer is a plain list of keys and values."""
    return all(type(layer).__name__ == "DynamicLayer" for layer in cache.layers)
