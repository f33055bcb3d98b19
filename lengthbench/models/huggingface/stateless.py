"""Dynamic NTK and LongRoPE without memory: the frequencies a window runs with depend on its own length only.

    dynamic   theta' = theta a^(r/(r-2)),  a = s max(L, L0) / L0 - (s - 1)     (schemes: dynamic ntk)
    longrope  f_n / short_n if L <= L0, else f_n / long_n

transformers keeps the base of the longest input seen (dynamic), so its results depend on what ran before. Here its
update is switched off (`rope_type` = default) and the frequencies, made in float64, are installed before each pass.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lengthbench.errors import UserError
from lengthbench.models.huggingface import scaling

KINDS = ("dynamic", "longrope")


class Frequencies:
    """Installs the frequencies for a length; does nothing for the schemes where they never change."""

    def __init__(self, name: str, network: nn.Module, config: Any) -> None:
        self.entries = _entries(config)
        self.config = config
        self.modules = [m for m in network.modules() if hasattr(m, "rope_type") and _has_buffers(m, self.entries)]
        self.length: int | None = None
        if self.entries and not self.modules:
            kinds = ", ".join(sorted({e["rope_type"] for e in self.entries.values()}))
            raise UserError(f"{name}: {kinds} in an architecture whose frequencies cannot be set for each length")
        for module in self.modules:
            _switch_off(module)

    def install(self, n_fed: int) -> None:
        """Make the network ready for windows of `n_fed` tokens."""
        if not self.entries or n_fed == self.length:
            return
        for layer, entry in self.entries.items():
            freqs = frequencies(entry, n_fed, self.config)
            for module in self.modules:
                buffer = getattr(module, f"{layer}_inv_freq" if layer else "inv_freq")
                with torch.no_grad():
                    buffer.copy_(freqs)
        self.length = n_fed


def frequencies(entry: dict[str, Any], n_fed: int, config: Any) -> Tensor:
    """(r/2,) float64 for one window of `n_fed` tokens."""
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    r = int(width * entry.get("partial_rotary_factor", 1.0))
    theta = float(entry["rope_theta"])
    exponents = torch.arange(0, r, 2, dtype=torch.float64) / r
    if entry["rope_type"] == "dynamic":
        original, factor = config.max_position_embeddings, entry["factor"]
        growth = factor * max(n_fed, original) / original - (factor - 1)
        return (theta * growth ** (r / (r - 2))) ** -exponents
    chosen = entry["long_factor" if n_fed > entry[scaling.ORIGINAL] else "short_factor"]
    return theta**-exponents / torch.tensor(chosen, dtype=torch.float64)


def _entries(config: Any) -> dict[str, dict[str, Any]]:
    """Layer type ("" where there is one for all) -> its rope parameters, of those that change with the length."""
    rope = getattr(config, "rope_parameters", None) or {}
    nested = bool(rope) and all(v is None or isinstance(v, dict) for v in rope.values())
    entries = rope if nested else {"": rope}
    return {layer: e for layer, e in entries.items() if e and e.get("rope_type") in KINDS}


def _has_buffers(module: nn.Module, entries: dict[str, Any]) -> bool:
    return bool(entries) and all(hasattr(module, f"{e}_inv_freq" if e else "inv_freq") for e in entries)


def _switch_off(module: Any) -> None:
    if isinstance(module.rope_type, dict):
        module.rope_type = {k: "default" if v in KINDS else v for k, v in module.rope_type.items()}
    else:
        module.rope_type = "default"
