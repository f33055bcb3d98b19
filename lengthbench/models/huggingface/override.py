"""Another rotary scaling for a checkpoint with rotary positions: `rope`, `linear` and `ntk`, by its configuration.

    rope:theta=T     base T, no scaling          linear:factor=s   frequencies f_n / s (arXiv 2306.15595)
    ntk:factor=s     base theta s^(r/(r-2)), r the rotated channels of a head

`rope_parameters` is replaced whole before the weights are read, so base and partial rotation are repeated in it.
"""

from dataclasses import replace
from typing import Any

from lengthbench import registry
from lengthbench.errors import UserError
from lengthbench.models.huggingface.detect import Detected, detect

TAKES = {"rope": ("theta",), "linear": ("factor", "theta"), "ntk": ("factor", "theta")}
ROTARY = ("rope", "linear", "dynamic", "yarn", "longrope", "llama3")


def replace_scheme(name: str, config: Any, own: Detected, text: str) -> Detected:
    """Edit `config` in place and say what it now is; refuse what this checkpoint cannot be given."""
    scheme, given = registry.parse(text)
    if scheme not in TAKES:
        raise UserError(
            f"{name} has the position scheme {own.scheme}, which --scheme {text} cannot replace in a Hugging Face "
            f"checkpoint yet; {', '.join(TAKES)} can, where it is rotary"
        )
    rope = getattr(config, "rope_parameters", None)
    if own.scheme not in ROTARY or not rope or "rope_theta" not in rope:
        raise UserError(f"{name} has the position scheme {own.scheme}, which --scheme {text} cannot replace")
    for key in given:
        if key not in TAKES[scheme]:
            raise UserError(f"--scheme {text}: {scheme} has no parameter '{key}'; it takes: {', '.join(TAKES[scheme])}")
    theta = _number(text, given, "theta", rope["rope_theta"])
    kept = {"partial_rotary_factor": rope["partial_rotary_factor"]} if "partial_rotary_factor" in rope else {}
    new: dict[str, Any] = {"rope_type": "default", "rope_theta": theta, **kept}
    params = {"theta": theta} | ({"partial": kept["partial_rotary_factor"]} if kept else {})
    if scheme != "rope":
        if "factor" not in given:
            raise UserError(f"--scheme {text}: it needs a factor, for example {scheme}:factor=4")
        params["factor"] = _number(text, given, "factor", 1.0)
    if scheme == "linear":
        new |= {"rope_type": "linear", "factor": params["factor"]}
    if scheme == "ntk":
        r = _rotated(config, kept.get("partial_rotary_factor", 1.0))
        new["rope_theta"] = theta * params["factor"] ** (r / (r - 2))
    config.rope_parameters = new
    kept_facts = detect(config, {}).facts
    if "window" in own.params:
        params["window"] = own.params["window"]
    return replace(own, scheme=scheme, params=params, prefix_stable=True, facts=kept_facts)


def _number(text: str, given: dict[str, str], key: str, default: float) -> float:
    try:
        value = float(given.get(key, default))
    except ValueError:
        value = 0.0
    if value <= 0:
        raise UserError(f"--scheme {text}: {key}={given[key]} is not a number above 0")
    return value


def _rotated(config: Any, partial: float) -> int:
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return int(width * partial)
