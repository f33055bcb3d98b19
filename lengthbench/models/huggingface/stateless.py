"""Rotary frequencies of our own in a checkpoint: those of a scheme put in its place, and those that change with length.

    any --scheme           its frequencies and attention scale, as its file in schemes/ defines them
    the checkpoint's own   dynamic and longrope, from its configuration

transformers keeps the base of the longest input seen (dynamic), so its results depend on what ran before. Here its
update is switched off (`rope_type` = default) and the frequencies, made in float64, are installed before each pass;
they depend on the length of the window and on nothing else. An architecture that does not turn by them is refused.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from lengthbench import rotary
from lengthbench.errors import UserError
from lengthbench.models.huggingface import override, scaling

KINDS = ("dynamic", "longrope")
"""Types whose frequencies depend on the window."""
Rule = Callable[[int], Tensor]
"""Tokens fed -> (r/2,) float64."""


class Frequencies:
    """Installs the frequencies for a length; does nothing for a checkpoint's own scheme where they never change."""

    def __init__(self, name: str, network: nn.Module, config: Any) -> None:
        self.name = name
        schemes = override.replaced(config)
        self.rules: dict[str, Rule] = {layer: scheme.frequencies for layer, scheme in schemes.items()} or _own(config)
        self.modules: list[nn.Module] = []
        self.length: int | None = None
        if not self.rules:
            return
        modules = [m for m in network.modules() if hasattr(m, "rope_type") and _has_buffers(m, self.rules)]
        for module in modules:
            _switch_off(module)
            for layer, scheme in schemes.items():
                self._scale(module, _named(layer, "attention_scaling"), scheme.attention_scale)
        self.modules = _obeying(network, modules) if modules else []
        if not self.modules:
            kinds = {s.name for s in schemes.values()} or {e["rope_type"] for e in scaling.entries(config).values()}
            named = ", ".join(sorted(kinds))
            raise UserError(f"{name}: {named} in an architecture whose frequencies cannot be set for each length")

    def install(self, n_fed: int) -> None:
        """Make the network ready for windows of `n_fed` tokens."""
        if not self.rules or n_fed == self.length:
            return
        for layer, rule in self.rules.items():
            freqs = rule(n_fed)
            for module in self.modules:
                buffer = getattr(module, _named(layer, "inv_freq"))
                if buffer.shape != freqs.shape:
                    raise UserError(
                        f"{self.name}: its code turns {len(buffer)} pairs, the scheme {len(freqs)}; "
                        "another scheme cannot be put into this architecture"
                    )
                with torch.no_grad():
                    buffer.copy_(freqs)
        self.length = n_fed

    def _scale(self, module: nn.Module, attribute: str, scale: float) -> None:
        if hasattr(module, attribute):
            setattr(module, attribute, scale)
        elif scale != 1:
            raise UserError(
                f"{self.name}: the scheme multiplies cos and sin by {scale:.6g}, its architecture has no place for that"
            )


def _obeying(network: nn.Module, modules: list[nn.Module]) -> list[nn.Module]:
    """The modules that a pass uses; none if one of them turns by anything but its buffers and its attention scale.

    Tried with frequencies of zero, which turn nothing. Phi-3.5-MoE in transformers 5.24 computes its own each time.
    """
    seen: list[tuple[nn.Module, Any]] = []
    hooks = [m.register_forward_hook(lambda m, _, turns: seen.append((m, turns))) for m in modules]
    buffers = [b for m in modules for n, b in m.named_buffers() if n.endswith("inv_freq") and "original" not in n]
    kept = [buffer.clone() for buffer in buffers]
    try:
        with torch.inference_mode():
            for buffer in buffers:
                buffer.zero_()
            network(input_ids=torch.zeros((1, 8), dtype=torch.long, device=buffers[0].device), use_cache=False)
            for buffer, own in zip(buffers, kept, strict=True):
                buffer.copy_(own)
    finally:
        for hook in hooks:
            hook.remove()
    used = {id(module) for module, _ in seen}
    return [m for m in modules if id(m) in used] if all(_unturned(m, turns) for m, turns in seen) else []


def _unturned(module: nn.Module, turns: Any) -> bool:
    """Whether cos and sin (or their complex sum) are those of angle 0, times an attention scale of the module."""
    cos, sin = turns if isinstance(turns, tuple) else (turns.real, turns.imag)
    scales = {float(v) for n, v in vars(module).items() if n.endswith("attention_scaling")} or {1.0}
    right = any(bool(((cos.float() - scale).abs() <= 0.01 * scale).all()) for scale in scales)
    return right and not bool(sin.any())


def _own(config: Any) -> dict[str, Rule]:
    """Rules of the checkpoint's own entries that depend on the window, by layer type."""
    return {
        layer: _rule(entry, config)
        for layer, entry in scaling.entries(config).items()
        if entry.get("rope_type") in KINDS
    }


def _rule(entry: dict[str, Any], config: Any) -> Rule:
    r = int(scaling.head_width(config) * entry.get("partial_rotary_factor", 1.0))
    theta = float(entry["rope_theta"])
    if entry["rope_type"] == "dynamic":
        original = config.max_position_embeddings
        return lambda n_fed: rotary.dynamic(r, theta, entry["factor"], original, n_fed)
    short, long = (rotary.longrope(r, theta, entry[key]) for key in ("short_factor", "long_factor"))
    return lambda n_fed: long if n_fed > entry[scaling.ORIGINAL] else short


def _named(layer: str, attribute: str) -> str:
    return f"{layer}_{attribute}" if layer else attribute


def _has_buffers(module: nn.Module, rules: dict[str, Rule]) -> bool:
    return bool(rules) and all(hasattr(module, _named(layer, "inv_freq")) for layer in rules)


def _switch_off(module: Any) -> None:
    """A module that holds our frequencies must not compute its own in its forward pass."""
    if isinstance(module.rope_type, dict):
        module.rope_type = dict.fromkeys(module.rope_type, "default")
    else:
        module.rope_type = "default"
