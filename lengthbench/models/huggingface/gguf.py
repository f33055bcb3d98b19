"""GGUF files: their configuration as transformers reads it, and a refusal where it reads less than is there.

transformers 5.24 takes the rotary base and the lengths from the metadata, but neither `*.rope.scaling.*` nor the
`rope_freqs` tensor (Llama 3.1's scaling): such a file would run, with wrong numbers.

It also parses the file anew for config, tokenizer and weights (10 s each) and builds a table of names anew for each
module (20 s): inside `reading()` each is made once.
"""

import functools
import importlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from lengthbench.errors import UserError
from lengthbench.models.huggingface.source import Source


def config(where: Source) -> Any:
    """The configuration; raises UserError for an architecture or a scaling that would not be honoured."""
    from transformers import AutoConfig

    assert where.gguf
    try:
        found = AutoConfig.from_pretrained(where.place, **where.arguments)
    except Exception as error:  # the reader raises whatever a malformed file leads it into
        raise UserError(
            f"{where.name}: transformers cannot read this GGUF file: {' '.join(str(error).split())[:300]}"
        ) from None
    _refuse_lost_scaling(where.name, Path(where.place) / where.gguf, found)
    return found


@contextmanager
def reading() -> Iterator[None]:
    """Work is done once, and the bar that no setting reaches is off; outside, everything is as it was."""
    import gguf

    legacy = importlib.import_module("transformers.modeling_gguf_pytorch_utils")
    with ExitStack() as stack:
        for owner, name in ((gguf, "GGUFReader"), (gguf, "get_tensor_name_map")):
            if hasattr(owner, name):
                stack.enter_context(mock.patch.object(owner, name, functools.cache(getattr(owner, name))))
        if hasattr(legacy, "tqdm"):
            stack.enter_context(mock.patch.object(legacy, "tqdm", functools.partial(legacy.tqdm, disable=True)))
        yield


def _refuse_lost_scaling(name: str, path: Path, config: Any) -> None:
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type", "default") != "default":
        return
    metadata, tensors = _metadata(path)
    kind = next((v for k, v in metadata.items() if k.endswith(".rope.scaling.type")), "none")
    lost = f"rope.scaling.type {kind}" if kind not in ("none", "", None) else ""
    lost = lost or next((f"the tensor {t}" for t in tensors if t.startswith("rope_f")), "")
    if lost:
        raise UserError(
            f"{name}: it has {lost}, which transformers does not read from GGUF; use the safetensors checkpoint"
        )


def _metadata(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Key-value pairs without the long lists, and the names of the tensors."""
    try:
        from transformers.integrations.gguf.reader import read_gguf_metadata
    except ImportError:  # before 5.24
        from gguf import GGUFReader

        reader = GGUFReader(path)
        values = {k: f.contents() for k, f in reader.fields.items() if len(f.data) == 1}
        return values, tuple(t.name for t in reader.tensors)
    return read_gguf_metadata(str(path))
