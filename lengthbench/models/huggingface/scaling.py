"""Rotary scaling as a config.json writes it: every key known, every needed key there, or a UserError that names it.

    "rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, "factor": 8, ...}     flat, or one for each layer type
    "rope_scaling": {"type": "yarn", "factor": 8, ...}                                legacy

transformers 5.24 only logs a key it does not know, so `rope_tpye` would silently run without any scaling.
"""

import difflib
from typing import Any

from lengthbench.errors import UserError

REQUIRED = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "yarn": ("factor",),
    "longrope": ("short_factor", "long_factor"),
    "llama3": ("factor", "original_max_position_embeddings", "low_freq_factor", "high_freq_factor"),
    "proportional": (),
}
ORIGINAL = "original_max_position_embeddings"
OPTIONAL = {
    "linear": (ORIGINAL,),
    "dynamic": (ORIGINAL,),
    "yarn": (ORIGINAL, "attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate"),
    "longrope": (ORIGINAL, "attention_factor", "factor", "short_mscale", "long_mscale"),
    "proportional": ("factor",),
}
EVERY = {key for keys in (*REQUIRED.values(), *OPTIONAL.values()) for key in keys}
"""Keys that mean nothing without a type."""
ALWAYS = ("rope_type", "type", "rope_theta", "partial_rotary_factor", "mrope_section")
ALIASES = {"su": "longrope", "mrope": "default"}
"""Names of old checkpoints, as transformers reads them."""


def check(name: str, config: dict[str, Any], extra: set[str]) -> None:
    """Refuse a scaling that transformers would misread; `extra` are the keys that this architecture adds."""
    for field in ("rope_scaling", "rope_parameters"):
        found = config.get(field)
        if isinstance(found, dict) and found:
            nested = all(isinstance(v, dict) or v is None for v in found.values())
            for entry in found.values() if nested else [found]:
                if entry:
                    _check(name, field, entry, extra, config)


def _check(name: str, field: str, entry: dict[str, Any], extra: set[str], config: dict[str, Any]) -> None:
    _refuse_unknown(name, field, entry, {*ALWAYS, *EVERY, *extra}, "no scaling")
    kind = _type(name, field, entry, config.get("model_type"))
    _refuse_unknown(name, field, entry, {*ALWAYS, *REQUIRED[kind], *OPTIONAL.get(kind, ()), *extra}, kind)
    for key in REQUIRED[kind]:
        if key not in entry:
            raise UserError(f"{name}: config.json: {field} of type {kind} lacks the key '{key}'")
    for key in ("factor", "low_freq_factor", "high_freq_factor", ORIGINAL):
        value = entry.get(key)
        if value is not None and (not isinstance(value, int | float) or isinstance(value, bool) or value <= 0):
            raise UserError(f"{name}: config.json: {field}: '{key}' is {value!r}, it must be a number above 0")
    if kind == "longrope" and ORIGINAL not in entry and ORIGINAL not in config:
        raise UserError(f"{name}: config.json: {field} of type longrope lacks the key '{ORIGINAL}'")
    longest = config.get("max_position_embeddings")
    if kind == "dynamic" and entry.get(ORIGINAL, longest) != longest:
        raise UserError(
            f"{name}: config.json: dynamic scaling starts at max_position_embeddings ({longest}) in transformers, "
            f"'{ORIGINAL}' says {entry[ORIGINAL]}; make the two equal"
        )


def _refuse_unknown(name: str, field: str, entry: dict[str, Any], known: set[str], who: str) -> None:
    for key in entry:
        if key not in known:
            guess = difflib.get_close_matches(key, sorted(known), 1)
            meant = f"; did you mean '{guess[0]}'?" if guess else ""
            knows = "knows" if who == "no scaling" else "does not know"
            raise UserError(f"{name}: config.json: {field} has a key '{key}' that {who} {knows}{meant}")


def _type(name: str, field: str, entry: dict[str, Any], model_type: str | None) -> str:
    new, old = entry.get("rope_type"), entry.get("type")
    if new is None and old is None:
        if lone := [k for k in entry if k in EVERY]:
            raise UserError(f"{name}: config.json: {field} lacks the key 'rope_type'; it has: {', '.join(lone)}")
        return "default"
    kind = new if new is not None else old
    # Phi-3's own class reads su and yarn as longrope.
    if model_type == "phi3" and kind == "yarn":
        kind = "longrope"
    kind = ALIASES.get(kind, kind) if isinstance(kind, str) else kind
    if kind not in REQUIRED:
        raise UserError(f"{name}: config.json: {field} has the type '{kind}', which is none of: {', '.join(REQUIRED)}")
    if new and old and ALIASES.get(old, old) not in (kind, "default"):
        raise UserError(f"{name}: config.json: {field} says rope_type '{new}' and type '{old}'; keep one")
    return kind


def entries(config: Any) -> dict[str, dict[str, Any]]:
    """Layer type ("" where there is one for all) -> its rope parameters, of the layers that rotate."""
    rope = getattr(config, "rope_parameters", None) or {}
    nested = bool(rope) and all(v is None or isinstance(v, dict) for v in rope.values())
    return {layer: entry for layer, entry in (rope if nested else {"": rope}).items() if entry}


def head_width(config: Any) -> int:
    """Channels of a head that take part in the rotation or pass beside it."""
    return getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads


def attention_scale(entry: dict[str, Any], longest: int | None) -> float:
    """What cos and sin are multiplied by, as transformers reads the entry."""
    from lengthbench import rotary

    kind = entry["rope_type"]
    if kind not in ("yarn", "longrope"):
        return 1.0
    if entry.get("attention_factor") is not None:
        return float(entry["attention_factor"])
    original = float(entry[ORIGINAL])
    factor = float(entry.get("factor") or (longest or original) / original)
    if kind == "longrope":
        return rotary.longrope_scale(factor, int(original))
    return rotary.yarn_scale(factor, entry.get("mscale"), entry.get("mscale_all_dim"))
