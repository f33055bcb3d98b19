"""Weights of a Hugging Face checkpoint, complete or not at all."""

from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.files import sha256
from lengthbench.model import Card, LoadOptions
from lengthbench.models.device import device as device_of
from lengthbench.models.huggingface.network import HuggingFaceModel
from lengthbench.models.huggingface.source import Source

HARMLESS = ("inv_freq", "attn.bias", "masked_bias", "attention.bias", "embed_positions.weights")
"""Ends of names that are buffers of older versions: computed, not trained."""
DTYPES = ("auto", "float32", "bfloat16", "float16")


def load(card: Card, where: Source, config: Any, options: LoadOptions) -> HuggingFaceModel:
    """Raises UserError that names the tensors if any is missing, left over or misshapen."""
    import torch
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    device = device_of(options.device)
    dtype = _dtype(options.dtype, config, where, device)
    try:
        network, report = AutoModelForCausalLM.from_pretrained(
            where.place,
            config=None if where.gguf else config,
            dtype=getattr(torch, dtype),
            use_safetensors=None if options.allow_pickle or where.gguf else True,
            trust_remote_code=options.allow_remote_code,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
            **where.arguments(),
        )
    except Exception as error:  # transformers raises many kinds here
        raise UserError(f"--model {card.name}: {_why(error, options)}") from None
    _check(card.name, report, options)
    files = [Path(where.place) / where.gguf] if where.gguf else _weights(where)
    return HuggingFaceModel(card, network.to(device).eval(), where, dtype, device, sha256(files), options)


def _dtype(wanted: str, config: Any, where: Source, device: str) -> str:
    """As stored where that is quick, else float32."""
    if wanted not in DTYPES:
        raise UserError(f"--dtype {wanted}: it is one of {', '.join(DTYPES)}")
    if wanted != "auto":
        return wanted
    stored = str(getattr(config, "dtype", None) or "").removeprefix("torch.")
    if where.gguf:
        stored = "bfloat16"
    if stored not in ("bfloat16", "float16"):
        return "float32"
    return stored if device.startswith("cuda") or (stored == "bfloat16" and _quick_bfloat16()) else "float32"


def _quick_bfloat16() -> bool:
    import torch

    probes = (getattr(torch.cpu, name, None) for name in ("_is_amx_tile_supported", "_is_avx512_bf16_supported"))
    return any(probe() for probe in probes if probe)


def _check(name: str, report: dict[str, Any], options: LoadOptions) -> None:
    wrong = {
        "missing": sorted(report.get("missing_keys") or ()),
        "misshapen": sorted(str(k[0] if isinstance(k, tuple) else k) for k in report.get("mismatched_keys") or ()),
        "left over": sorted(k for k in report.get("unexpected_keys") or () if not k.endswith(HARMLESS)),
    }
    said = [f"{what}: {', '.join(keys[:5])}{' ...' if len(keys) > 5 else ''}" for what, keys in wrong.items() if keys]
    if said and not options.allow_missing:
        raise UserError(
            f"--model {name}: the weights do not fit config.json; {'; '.join(said)}; "
            "random values would stand in for them (--allow-missing loads it all the same)"
        )


def _weights(where: Source) -> list[Path]:
    if where.folder is None:
        return []
    found = sorted(where.folder.glob("*.safetensors"))
    return found or sorted(p for p in where.folder.glob("*.bin") if "model" in p.name)


def _why(error: Exception, options: LoadOptions) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    if "safetensors" in text and not options.allow_pickle:
        return "it has no safetensors weights; pickled ones can run code, --allow-pickle loads them"
    if isinstance(error, ImportError):
        return f"loading it needs another package: {text}; for .gguf: pip install gguf"
    return f"cannot be loaded: {text}"
