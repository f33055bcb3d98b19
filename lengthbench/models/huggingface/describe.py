"""The card of a transformers checkpoint, from its configuration alone; weights are read by `card.load()`.

Paths, keys and hub answers are judged before transformers is imported, which takes seconds.
"""

import json
from dataclasses import replace
from typing import Any

from lengthbench.errors import UserError
from lengthbench.model import Card, LoadOptions, Model
from lengthbench.models.huggingface import scaling, source
from lengthbench.models.huggingface.detect import Detected, detect
from lengthbench.models.huggingface.source import Source

ENCODERS = "it is an encoder: it sees what comes after a token, so it has no losses by length"


def describe(spec: str, options: LoadOptions) -> Card:
    """`spec` is a folder, a hub id `org/name[@revision]`, a `.gguf` file, or `smollm2`."""
    where = source.find(spec)
    if where.gguf:
        config, written = _gguf_config(where)
    else:
        where, written = source.read_config(where)
        config = _config(where, written, options)
    text = config.get_text_config(decoder=True)
    _refuse_what_cannot_be_scored(spec, config, text)
    found = detect(text, written.get("text_config") or written)
    if options.train_length:
        found = replace(found, train_length=options.train_length, train_length_source="--train-length")
    if options.scheme:
        from lengthbench.models.huggingface import override

        found = override.replace_scheme(spec, text, found, options.scheme)
    return _card(spec, where, config, written, found, options)


def _card(
    spec: str, where: Source, config: Any, written: dict[str, Any], found: Detected, options: LoadOptions
) -> Card:
    def load() -> Model:
        from lengthbench.models.huggingface.load import load

        return load(card, where, config, options)

    place = {"path": where.place} if where.local else {"hub": where.place, "revision": where.revision}
    if where.gguf:
        place["gguf"] = where.gguf
    # The vocabulary of a GGUF's metadata and the like would drown the manifest.
    kept = {k: v for k, v in written.items() if not isinstance(v, list) or len(v) <= 512}
    card = Card(
        name=spec,
        scheme=found.scheme,
        scheme_params=found.params,
        train_length=found.train_length,
        train_length_source=found.train_length_source,
        limit=found.limit,
        prefix_stable=found.prefix_stable,
        load=load,
        warnings=found.warnings,
        facts={**place, "config": kept, **found.facts},
    )
    return card


def _config(where: Source, written: dict[str, Any], options: LoadOptions) -> Any:
    """transformers' configuration object, with every default filled in."""
    name, kind = where.name, written.get("model_type")
    if not kind:
        raise UserError(f"{name}: config.json names no model_type, so transformers cannot build it")
    if written.get("is_encoder_decoder"):
        raise UserError(f"{name}: {kind} is an encoder with a decoder; only decoders are measured")
    from transformers import AutoConfig
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from lengthbench.models.huggingface.quiet import quiet

    native = kind in CONFIG_MAPPING
    if not native and not ("auto_map" in written and options.allow_remote_code):
        _refuse_unknown(name, kind, written)
    for part in (written, written.get("text_config")):
        if isinstance(part, dict):
            scaling.check(name, {**written, **part}, _own_rope_keys(part.get("model_type", kind)))
    with quiet():
        try:
            return AutoConfig.from_pretrained(where.place, trust_remote_code=not native, **where.arguments)
        except Exception as error:  # each architecture's class raises what it likes about its own fields
            raise UserError(f"{name}: transformers refuses its config.json: {_line(error)}") from None


def _own_rope_keys(kind: str) -> set[str]:
    """Keys that this architecture adds to its rope parameters."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    try:
        return set(CONFIG_MAPPING[kind].ignore_keys_at_rope_validation or ())
    except (KeyError, AttributeError):
        return set()


def _refuse_unknown(name: str, kind: str, written: dict[str, Any]) -> None:
    import transformers

    if "auto_map" in written:
        raise UserError(f"{name}: its type {kind} comes with code of its own (auto_map); --allow-remote-code runs it")
    raise UserError(f"{name}: transformers {transformers.__version__} knows no model of type {kind}; update it")


def _gguf_config(where: Source) -> tuple[Any, dict[str, Any]]:
    from lengthbench.models.huggingface import gguf
    from lengthbench.models.huggingface.quiet import quiet

    with quiet(), gguf.reading():
        config = gguf.config(where)
    return config, json.loads(config.to_json_string(use_diff=False))


def _refuse_what_cannot_be_scored(name: str, config: Any, text: Any) -> None:
    from transformers.models.auto.modeling_auto import (
        MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        MODEL_FOR_MASKED_LM_MAPPING_NAMES,
    )

    kind = config.model_type
    if config.is_encoder_decoder:
        raise UserError(f"{name}: {kind} is an encoder with a decoder; only decoders are measured")
    if getattr(config, "auto_map", None) and kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES:
        return
    if kind in MODEL_FOR_MASKED_LM_MAPPING_NAMES and not getattr(config, "is_decoder", False):
        raise UserError(f"{name}: {kind}: {ENCODERS}")
    if not {kind, text.model_type} & set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        raise UserError(f"{name}: transformers has no causal language model of type {kind}")
    attention = getattr(config, "attn_config", None)
    if kind == "mpt" and attention is not None and (not attention.alibi or attention.alibi_bias_max != 8):
        raise UserError(
            f"{name}: its attn_config asks for alibi={attention.alibi}, alibi_bias_max={attention.alibi_bias_max}; "
            f"transformers computes MPT with ALiBi of 8 only"
        )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
