"""Rotary scalings that depend on the length of the input, made independent of what ran before.

transformers keeps the base of the longest input that a `dynamic` model has seen, so a short input after a long one
gets other losses. Here the frequencies for each length are computed afresh and installed before the forward pass.
"""

from typing import Any

from lengthbench.errors import UserError
from lengthbench.models.huggingface.detect import BY_TOTAL_LENGTH


class Rotation:
    """`prepare(n)` makes the network rotate as it would if inputs of n tokens were all it ever saw."""

    def __init__(self, spec: str, network: Any) -> None:
        from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

        self.modules = [m for m in network.modules() if getattr(m, "rope_type", None) in BY_TOTAL_LENGTH]
        self.functions = [ROPE_INIT_FUNCTIONS[m.rope_type] for m in self.modules]
        for module in self.modules:
            module.rope_type = "default"  # its own forward then leaves the frequencies alone
        if not self.modules:
            raise UserError(f"--model {spec}: its rotary embedding cannot be reached, so its scaling cannot be trusted")

    def prepare(self, n_tokens: int) -> None:
        """Frequencies and attention factor for an input of `n_tokens`."""
        for module, function in zip(self.modules, self.functions, strict=True):
            frequencies, factor = function(module.config, module.inv_freq.device, seq_len=n_tokens)
            module.inv_freq = frequencies.to(module.inv_freq)
            module.attention_scaling = factor
