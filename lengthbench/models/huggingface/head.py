"""From hidden states to logits as the checkpoint's own class does it, found by trying and proved by comparing.

    logits = softcap(scale * (h W^T + b))

Cohere multiplies by logit_scale, Granite divides by logits_scaling, Gemma caps. The form that gives the class's
own logits on a few random tokens is taken; if none does, the losses come from the full logits instead.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from lengthbench.models.loss import Head

TOKENS = 48
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.bfloat16: 3e-2, torch.float16: 5e-3}
"""Of the largest logit, or of 1 where that is less."""


def find(network: Any, hidden: Callable[[Tensor], Tensor], tokens: Tensor, logits: Tensor) -> Head | None:
    """The head that turns `hidden(tokens)` into `logits` (1, T, V), the class's own; None: no form of it does."""
    output = network.get_output_embeddings()
    weight = getattr(output, "weight", None)
    if weight is None or weight.ndim != 2 or len(weight) != logits.shape[-1]:
        return None
    try:
        states = hidden(tokens)[0]
    except (TypeError, AttributeError, IndexError, KeyError):  # a base model of another make
        return None
    if states.ndim != 2 or states.shape[-1] != weight.shape[1]:
        return None
    for scale, softcap in _forms(network.config.get_text_config(decoder=True)):
        head = Head(weight, getattr(output, "bias", None), scale, softcap)
        if agree(head.logits(states, 0, head.vocabulary), logits[0], weight.dtype):
            return head
    return None


def agree(found: Tensor, wanted: Tensor, dtype: torch.dtype) -> bool:
    """Within the rounding of `dtype`."""
    wanted = wanted.to(found.dtype)
    largest = max(1.0, float(wanted.abs().max()))
    return bool((found - wanted).abs().max() <= TOLERANCE.get(dtype, 1e-4) * largest)


def _forms(config: Any) -> Iterator[tuple[float, float | None]]:
    """The plain form, then every way a configuration is known to scale logits."""
    softcap = getattr(config, "final_logit_softcapping", None)
    fields = ("logit_scale", "logits_scaling", "lm_head_multiplier", "output_multiplier")
    stated = [getattr(config, name, None) for name in fields]
    numbers = [float(s) for s in stated if isinstance(s, int | float) and s]
    for scale in [1.0, *numbers, *(1 / n for n in numbers)]:
        yield scale, softcap
