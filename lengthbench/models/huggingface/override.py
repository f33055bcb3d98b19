"""Another rotary scaling in a checkpoint with rotary positions: what the files in schemes/ define, in all its layers.

    --scheme yarn:factor=4     theta and partial as the checkpoint has them, original its training length

A checkpoint with a base for each layer type keeps each, unless theta is given. Its `rope_parameters` are written anew,
so that nothing of the old scaling is left; the frequencies themselves are installed by stateless.py once the weights
are read. Written as longrope, whose divisor for each pair can spell any scaling, transformers comes to the same
frequencies by its own code for the few tokens that a loaded model is tried on.
"""

from dataclasses import replace
from typing import Any

from lengthbench import registry, rotary
from lengthbench.errors import UserError
from lengthbench.models.huggingface import head, scaling
from lengthbench.models.huggingface.detect import Detected
from lengthbench.scheme import Shape

SCHEMES = ("rope", "linear", "ntk", "dynamic", "yarn", "longrope", "llama3", "p_rope")


def replace_scheme(name: str, config: Any, own: Detected, text: str) -> Detected:
    """Edit `config` in place and say what it now is; refuse what this checkpoint cannot be given."""
    scheme, given = registry.parse(text)
    entries = scaling.entries(config)
    if why := _refusal(scheme, own, entries):
        raise UserError(f"{name} has the position scheme {own.scheme}, which --scheme {text} cannot replace: {why}")
    width, length = scaling.head_width(config), own.train_length or 0
    texts = {layer: _text(scheme, given, entry) for layer, entry in entries.items()}
    found = {layer: _scheme(text, width, length) for layer, text in texts.items()}
    for layer, entry in entries.items():
        _refuse_other_channels(name, found[layer], entry)
    written = {layer: _written(entry, found[layer], config) for layer, entry in entries.items()}
    config.rope_parameters = written.get("", {**config.rope_parameters, **written})
    if getattr(config, "head_dim", width) is None:
        config.head_dim = width  # transformers' longrope multiplies it as it stands (Mixtral)
    # The configuration is what travels to where the weights are read.
    config.replaced_scheme = {layer: (text, width, length) for layer, text in texts.items()}
    params: dict[str, Any] = {layer: each.params for layer, each in found.items()}
    params = params.get("", params)
    if "window" in own.params:
        params = {**params, "window": own.params["window"]}
    stable = all(each.prefix_stable for each in found.values())
    return replace(own, scheme=scheme, params=params, prefix_stable=stable)


def replaced(config: Any) -> dict[str, rotary.Rotary]:
    """Layer type ("" where there is one for all) -> the scheme that `replace_scheme` put in; empty if it did not."""
    return {layer: _scheme(*put) for layer, put in getattr(config, "replaced_scheme", {}).items()}


def _refusal(scheme: str, own: Detected, entries: dict[str, Any]) -> str:
    if scheme not in SCHEMES:
        return f"a Hugging Face checkpoint takes {', '.join(SCHEMES)}, where it is rotary"
    if own.scheme not in SCHEMES:
        return "only a checkpoint with rotary positions can be given another scheme"
    return "" if entries else "its code keeps a table of rotations, so no frequencies can be installed"


def _text(scheme: str, given: dict[str, str], entry: dict[str, Any]) -> str:
    """`given` with the checkpoint's own base and share of rotating channels, as `registry.load` reads it."""
    own: dict[str, Any] = {"theta": entry["rope_theta"]}
    if (scheme == "p_rope") == _is_proportional(entry) and "partial_rotary_factor" in entry:
        own["partial"] = entry["partial_rotary_factor"]
    values = own | given
    return f"{scheme}:" + ",".join(f"{key}={value}" for key, value in values.items())


def _scheme(text: str, width: int, length: int) -> rotary.Rotary:
    scheme = registry.load(text, Shape(width, 1, length))
    assert isinstance(scheme, rotary.Rotary), text
    return scheme


def _refuse_other_channels(name: str, scheme: rotary.Rotary, entry: dict[str, Any]) -> None:
    """Which channels turn is in the architecture's code; frequencies cannot change it."""
    own = 1.0 if _is_proportional(entry) else entry.get("partial_rotary_factor", 1.0)
    wanted = 1.0 if scheme.name == "p_rope" else scheme.params["partial"]
    if wanted != own:
        raise UserError(
            f"{name}: {scheme.name} with {wanted:g} of the channels of a head rotating cannot be put in: "
            f"its code rotates {own:g} of them"
        )


def _is_proportional(entry: dict[str, Any]) -> bool:
    """Whether `partial_rotary_factor` is p of p-RoPE there; all channels belong to a pair then."""
    return entry.get("rope_type") == "proportional"


def _written(entry: dict[str, Any], scheme: rotary.Rotary, config: Any) -> dict[str, Any]:
    """`entry` with the scheme in place of its scaling, in transformers' words."""
    others = {k: v for k, v in entry.items() if k not in scaling.EVERY and k != "type"}
    theta = scheme.params["theta"]
    divisors = rotary.frequencies(scheme.rotated, theta) / scheme.frequencies(head.TOKENS)
    if _is_proportional(entry):
        others.pop("partial_rotary_factor", None)
    return others | {
        "rope_type": "longrope",
        "rope_theta": theta,
        "short_factor": divisors.tolist(),
        "long_factor": divisors.tolist(),
        **dict.fromkeys(("attention_factor", "short_mscale", "long_mscale"), scheme.attention_scale),
        scaling.ORIGINAL: entry.get(scaling.ORIGINAL, config.max_position_embeddings),
    }
