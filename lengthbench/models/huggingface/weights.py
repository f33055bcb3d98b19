"""The weight files of a checkpoint: which ones, of which float type, and whether they are the whole model."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.models.huggingface.source import Source

SAFE, PICKLE = "model.safetensors", "pytorch_model.bin"
HARMLESS = re.compile(r"(rotary_emb\.|\binv_freq$|\.masked_bias$|\battn(ention)?\.bias$|position_ids$)")
"""Buffers that old checkpoints carry and that are computed anew."""
SHOWN = 6
"""Names of tensors in a message."""


def files(source: Source, allow_pickle: bool) -> list[Path]:
    """The files, sorted by name; safetensors, or pickle where that is all there is and the user allows it."""
    if source.gguf:
        return [Path(source.place) / source.gguf]
    if found := _shards(source, SAFE):
        return found
    pickled = _shards(source, PICKLE) if allow_pickle or source.local else []
    if pickled and allow_pickle:
        return pickled
    if pickled or not source.local:
        raise UserError(
            f"{source.name}: no safetensors weights; --allow-pickle loads {PICKLE}, which can run code of its maker"
        )
    raise UserError(f"{source.name}: the folder has a config.json but no {SAFE}")


def is_safe(paths: Iterable[Path]) -> bool:
    """Whether reading them runs no code."""
    return all(path.suffix != ".bin" for path in paths)


def stored_dtype(paths: list[Path]) -> str:
    """`bfloat16`, `float16` or `float32`: the type of the largest share of the tensors, as the files say.

    A GGUF file counts as bfloat16: its blocks are coarser than that.
    """
    names = {"BF16": "bfloat16", "F16": "float16"}
    counts: dict[str, int] = {}
    for path in paths:
        if path.suffix != ".safetensors":
            return "bfloat16" if path.suffix == ".gguf" else "float32"
        with path.open("rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
        for key, tensor in header.items():
            if key != "__metadata__":
                begin, end = tensor["data_offsets"]
                counts[tensor["dtype"]] = counts.get(tensor["dtype"], 0) + end - begin
    return names.get(max(counts, key=lambda k: counts[k], default=""), "float32")


def complaint(info: Any) -> str:
    """What of `from_pretrained`'s loading information makes these weights another model's; empty if nothing."""
    parts = []
    if missing := sorted(info["missing_keys"]):
        parts.append(f"missing from the weights: {_some(missing)}")
    if unknown := sorted(k for k in info["unexpected_keys"] if not HARMLESS.search(k)):
        parts.append(f"in the weights but not in the model: {_some(unknown)}")
    if mismatched := sorted(info["mismatched_keys"]):
        named = [f"{key} {list(stored)} instead of {list(wanted)}" for key, stored, wanted in mismatched]
        parts.append(f"of another shape: {_some(named)}")
    return "; ".join(parts)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _shards(source: Source, name: str) -> list[Path]:
    single = source.file(name)
    if single:
        return [single]
    index = source.file(f"{name}.index.json")
    if index is None:
        return []
    try:
        names = sorted(set(json.loads(index.read_text("utf-8"))["weight_map"].values()))
    except (ValueError, KeyError, AttributeError) as error:
        raise UserError(f"{source.name}: {index} cannot be read: {error!r}") from None
    found = {shard: source.file(shard) for shard in names}
    lost = [shard for shard, path in found.items() if path is None]
    if lost:
        raise UserError(f"{source.name}: weight files are missing: {_some(lost)}")
    return [path for path in found.values() if path]
