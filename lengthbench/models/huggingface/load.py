"""Reads a checkpoint's weights and refuses what is not the whole of it.

Loaded with `dtype=`, never cast afterwards: casting would round the rotary frequencies to 16 bit, where positions
256 and 257 are the same.
"""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from lengthbench.errors import UserError
from lengthbench.files import sha256
from lengthbench.model import Card, LoadOptions
from lengthbench.models.device import device as device_of
from lengthbench.models.huggingface import gguf, weights
from lengthbench.models.huggingface.model import HuggingFaceModel
from lengthbench.models.huggingface.quiet import quiet
from lengthbench.models.huggingface.source import Source
from lengthbench.models.huggingface.tokenizer import HFTokenizer

DTYPES = ("float32", "bfloat16", "float16")
ROUNDED_BIAS = ("bloom", "falcon")
"""Architectures whose ALiBi bias is rounded with everything else: off by up to a nat in 16 bit."""


def load(card: Card, source: Source, config: Any, options: LoadOptions) -> HuggingFaceModel:
    """The model of `card`, ready to score. Raises UserError naming the tensors that do not fit."""
    device = device_of(options.device)
    paths = weights.files(source, options.allow_pickle)
    with quiet(), gguf.reading() if source.gguf else nullcontext():
        tokenizer = HFTokenizer(card.name, source, options.allow_remote_code)
        dtype = _dtype(options.dtype, weights.stored_dtype(paths), device, card, config)
        network, info = _network(card.name, source, config, dtype, weights.is_safe(paths), options)
        card = _complete(card, weights.complaint(info), bool(info["mismatched_keys"]), options)
        if card.scheme == "alibi" and config.model_type in ROUNDED_BIAS and dtype != "float32":
            rounded = f"{config.model_type} rounds its ALiBi bias to {dtype}; --dtype float32 does not"
            card = replace(card, warnings=(*card.warnings, rounded))
        tokenizer.fit(network.get_input_embeddings().weight.shape[0])
        return HuggingFaceModel(card, network.to(device).eval(), tokenizer, dtype, device, sha256(paths))


def _network(
    name: str, source: Source, config: Any, dtype: str, safe: bool, options: LoadOptions
) -> tuple[Any, dict[str, Any]]:
    from transformers import AutoModelForCausalLM

    keywords: dict[str, Any] = dict(source.arguments)
    if source.gguf:
        keywords |= _unpacked()
    else:
        keywords["use_safetensors"] = safe
    read: Any = AutoModelForCausalLM.from_pretrained  # with the loading info it returns a pair
    try:
        return read(
            source.place,
            config=config,
            dtype=getattr(torch, dtype),
            trust_remote_code=options.allow_remote_code,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # so that they are listed, and refused here
            **keywords,
        )
    except (OSError, ValueError, RuntimeError, KeyError, ImportError) as error:
        raise UserError(f"{name}: transformers cannot load it: {' '.join(str(error).split())[:300]}") from None


def _unpacked() -> dict[str, Any]:
    """GGUF weights as floats: losses must not depend on which packed kernels are installed."""
    try:
        from transformers.utils.quantization_config import GgufConfig
    except ImportError:  # before 5.24, which always unpacks
        return {}
    return {"quantization_config": GgufConfig(dequantize=True)}


def _complete(card: Card, complaint: str, misshapen: bool, options: LoadOptions) -> Card:
    if not complaint:
        return card
    if misshapen or not options.allow_missing:
        way_out = "" if misshapen else "; --allow-missing loads it with random values there and marks every row"
        raise UserError(f"{card.name}: weights and config.json are not one model: {complaint}{way_out}")
    return replace(card, warnings=(*card.warnings, f"loaded incomplete: {complaint}"))


def _dtype(wanted: str, stored: str, device: str, card: Card, config: Any) -> str:
    if wanted != "auto":
        if wanted not in DTYPES:
            raise UserError(f"--dtype {wanted}: it takes: auto, {', '.join(DTYPES)}")
        return wanted
    if card.scheme == "alibi" and config.model_type in ROUNDED_BIAS:
        return "float32"
    if device.startswith("cuda"):
        return stored
    return "bfloat16" if stored == "bfloat16" and _fast_bfloat16() else "float32"


def _fast_bfloat16() -> bool:
    """Whether this CPU multiplies in bfloat16 (AMX, or AVX512 with BF16)."""
    names = ("_is_amx_tile_supported", "_is_avx512_bf16_supported")
    return any(check() for name in names if callable(check := getattr(torch.cpu, name, None)))
