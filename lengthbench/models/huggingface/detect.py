"""The position scheme of a checkpoint, how long it was trained, and where it ends, from its configuration alone.

The first rule that matches decides: the architectures with a scheme of their own, then `rope_parameters`, flat or
one for each layer type. What no rule knows is `unknown`, and is then not fed past what it states.
"""

from dataclasses import dataclass, field
from typing import Any

from lengthbench.models.huggingface import scaling

LEARNED = {
    "gpt2": "n_positions",
    "openai-gpt": "n_positions",
    "gpt_bigcode": "n_positions",
    "gpt_neo": "max_position_embeddings",
    "opt": "max_position_embeddings",
    "biogpt": "max_position_embeddings",
}
"""Architecture -> the field that is the length of its table."""
WITHOUT = ("jamba", "mamba", "mamba2", "falcon_mamba", "rwkv")
"""Recurrent layers carry the order; nothing else does."""
OTHERS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
ROPE_NAMES = {"default": "rope", "proportional": "p_rope"}
LAYER_WISE = {
    "cohere2": "layers of full attention have no positions",
    "exaone4": "layers of full attention have no positions where others slide",
}
"""Said nowhere in the configuration, only in the code."""


@dataclass(frozen=True)
class Detected:
    scheme: str
    params: dict[str, Any]
    train_length: int | None
    train_length_source: str
    limit: int | None = None
    prefix_stable: bool = True
    facts: dict[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def detect(config: Any, written: dict[str, Any]) -> Detected:
    """`config` is transformers' text configuration, `written` the JSON it came from (to tell what is a default)."""
    kind = config.model_type
    if kind in ("bloom", "mpt") or (kind == "falcon" and config.alibi):
        return _alibi(config, written)
    if kind in ("gptj", "codegen"):
        params = {"theta": 10000.0, "partial": config.rotary_dim / (config.n_embd // config.n_head)}
        params["layout"] = "interleaved"
        return Detected("rope", params, *_length(config, written, "n_positions"), limit=config.n_positions)
    if kind in LEARNED:
        name = LEARNED[kind]
        return Detected("learned", {}, *_length(config, written, name), limit=getattr(config, name))
    if kind == "xglm":
        return Detected("sinusoidal", {}, *_length(config, written, "max_position_embeddings"))
    if kind == "ctrl":
        return Detected("sinusoidal", {}, *_length(config, written, "n_positions"), limit=config.n_positions)
    if kind in WITHOUT or (hasattr(config, "rope_parameters") and not config.rope_parameters):
        return Detected("none", {}, *_length(config, written, "max_position_embeddings"))
    if hasattr(config, "rope_parameters"):
        return _rotary(config, written)
    return _unknown(config, written)


def _alibi(config: Any, written: dict[str, Any]) -> Detected:
    name = {"bloom": "seq_length", "mpt": "max_seq_len"}.get(config.model_type, "max_position_embeddings")
    warnings: tuple[str, ...] = ()
    if config.model_type == "falcon":
        warnings = ("transformers rounds Falcon's ALiBi bias to bfloat16, in float32 too",)
    return Detected("alibi", {}, *_length(config, written, name), warnings=warnings)


def _rotary(config: Any, written: dict[str, Any]) -> Detected:
    rope = config.rope_parameters
    nested = all(v is None or isinstance(v, dict) for v in rope.values())
    entries = {k: v for k, v in rope.items() if v} if nested else {"": rope}
    main = entries.get("full_attention") or next(iter(entries.values()))
    kinds = [entry.get("rope_type", "default") for entry in entries.values()]
    longest = getattr(config, "max_position_embeddings", None)
    if nested:
        params: dict[str, Any] = {key: _params(entry, longest) for key, entry in entries.items()}
    else:
        params = _params(main, longest)
    window = _window(config)
    if window:
        params["window"] = window
    kind = main.get("rope_type", "default")
    length, source = _length(config, written, "max_position_embeddings")
    warnings: tuple[str, ...] = ()
    original = main.get(scaling.ORIGINAL)
    if original and kind in ("yarn", "longrope", "llama3", "linear"):
        length, source = int(original), f"config.{scaling.ORIGINAL}"
        if kind == "yarn" and scaling.ORIGINAL not in str(written):
            source = "config.max_position_embeddings"
            warnings = (f"yarn without {scaling.ORIGINAL}: taken as max_position_embeddings, {original}",)
    elif kind == "linear":
        source = f"claimed by {source}; may be the original or the extended length"
    return Detected(
        ROPE_NAMES.get(kind, kind),
        params,
        length,
        source,
        prefix_stable=not {"dynamic", "longrope"} & set(kinds),
        facts=_layers(config, rope if nested else {}),
        warnings=warnings,
    )


def _params(entry: dict[str, Any], longest: int | None) -> dict[str, Any]:
    """One entry of rope_parameters in the words of `--scheme`."""
    names = {
        "rope_theta": "theta",
        "partial_rotary_factor": "partial",
        "factor": "factor",
        scaling.ORIGINAL: "original",
        "beta_fast": "beta_fast",
        "beta_slow": "beta_slow",
        "low_freq_factor": "low",
        "high_freq_factor": "high",
        "short_factor": "short",
        "long_factor": "long",
    }
    params = {new: entry[old] for old, new in names.items() if entry.get(old) is not None}
    kind = entry.get("rope_type", "default")
    if kind == "dynamic":
        params["original"] = longest
    if kind in ("yarn", "longrope"):
        params["attention_scale"] = scaling.attention_scale({**entry, "rope_type": kind}, longest)
    return params


def _window(config: Any) -> int | None:
    if getattr(config, "use_sliding_window", True) is False:
        return None
    window = getattr(config, "sliding_window", None)
    layers = getattr(config, "layer_types", None)
    return window if window and (not layers or "sliding_attention" in layers) else None


def _layers(config: Any, nested: dict[str, Any]) -> dict[str, Any]:
    """Which layers differ: sliding windows, none of the positions."""
    facts: dict[str, Any] = {}
    layers = getattr(config, "layer_types", None)
    if layers and len(set(layers)) > 1:
        facts["layer_types"] = {kind: layers.count(kind) for kind in dict.fromkeys(layers)}
    # SmolLM3 and Llama 4 write 1 for a layer *with* rotation.
    rotated = getattr(config, "no_rope_layers", None)
    if rotated and 0 in rotated:
        facts["layers_without_positions"] = [n for n, on in enumerate(rotated) if not on]
    for kind, entry in nested.items():
        if entry is None:
            facts["layer_type_without_positions"] = kind
    if config.model_type in LAYER_WISE:
        facts["layers"] = LAYER_WISE[config.model_type]
    return facts


def _unknown(config: Any, written: dict[str, Any]) -> Detected:
    name = next((n for n in OTHERS if getattr(config, n, None)), "")
    length, source = _length(config, written, name)
    doubt = f"the position scheme of {config.model_type} is not known" + (
        f", so it is not fed past its {name} of {length}" if length else ""
    )
    return Detected("unknown", {}, length, source, limit=length, warnings=(doubt,))


def _length(config: Any, written: dict[str, Any], name: str) -> tuple[int | None, str]:
    """The field's value, and whether the checkpoint says it or only transformers' default does."""
    value = getattr(config, name, None) if name else None
    if not value:
        return None, "unknown"
    return int(value), f"config.{name}" if name in written else f"transformers' default of {name}"
