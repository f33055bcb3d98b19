"""A checkpoint's tokenizer: token ids of a whole text at once, and the bytes that each token completes.

Works on the fast tokenizer's Rust backend, so no length limit, padding or warning of the Python layer is met. Its
offsets are asked untrimmed: trimmed ones leave the white space inside a token out of its span.
"""

import hashlib
import json
from typing import Any

import numpy as np

from lengthbench.errors import UserError
from lengthbench.models.huggingface.source import Source
from lengthbench.models.tokenizers_file import completed_bytes

FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
)


MESSAGE = "PROMPT-GOES-HERE"
"""Stands for a user's message while a chat template is taken apart."""


class HFTokenizer:
    def __init__(self, name: str, source: Source, allow_remote_code: bool = False) -> None:
        self.whole = _read(name, source, allow_remote_code)
        self.name = name
        self.backend = _untrimmed(self.whole.backend_tokenizer)
        self.adds_start, self.start = _start(self.whole)
        self.vocabulary = len(self.whole)
        self.n_embeddings: int | None = None
        identity = json.dumps([self.backend.to_str(), self.adds_start, self.start])
        self.sha256 = hashlib.sha256(identity.encode()).hexdigest()

    def fit(self, n_embeddings: int) -> None:
        """Refuse a vocabulary that the model has no embeddings for; unused special tokens may lie above."""
        special = set(self.whole.added_tokens_decoder)
        ids = [i for i in self.whole.get_vocab().values() if i not in special]
        if ids and max(ids) >= n_embeddings:
            raise UserError(
                f"{self.name}: its tokenizer has ids up to {max(ids)}, the model only {n_embeddings} embeddings; "
                f"they are not of one checkpoint"
            )
        self.n_embeddings = n_embeddings

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Token ids (n,) without special tokens around them, and the bytes each completes (n,), both int32."""
        encoded = self.backend.encode(text, add_special_tokens=False)
        ids = np.array(encoded.ids, np.int32)
        if self.n_embeddings is not None and len(ids) and ids.max() >= self.n_embeddings:
            token = self.whole.convert_ids_to_tokens(int(ids.max()))
            raise UserError(
                f"{self.name}: the text has the token {token!r} ({ids.max()}), "
                f"the model only {self.n_embeddings} embeddings"
            )
        return ids, completed_bytes(text, encoded.offsets)

    def chat(self) -> tuple[str, str] | None:
        """What its chat template puts before and after a user's message; None where it has none."""
        if not self.whole.chat_template:
            return None
        message = [{"role": "user", "content": MESSAGE}]
        text = self.whole.apply_chat_template(message, add_generation_prompt=True, tokenize=False)
        before, found, after = str(text).partition(MESSAGE)
        return (before, after) if found else None

    def decode(self, tokens: np.ndarray) -> str:
        ids = [int(t) for t in tokens]
        return self.whole.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)


def _read(name: str, source: Source, allow_remote_code: bool) -> Any:
    from transformers import AutoTokenizer

    if source.local and not source.gguf and not any(source.file(f) for f in FILES):
        raise UserError(f"{name}: the folder has no tokenizer; copy its tokenizer.json there")
    try:
        found = AutoTokenizer.from_pretrained(source.place, trust_remote_code=allow_remote_code, **source.arguments)
    except Exception as error:  # each tokenizer class raises what it likes about its own files
        raise UserError(f"{name}: its tokenizer cannot be read: {' '.join(str(error).split())[:300]}") from None
    if not getattr(found, "is_fast", False):
        raise UserError(
            f"{name}: its tokenizer {type(found).__name__} says not which bytes a token stands for; "
            f"a tokenizer.json is needed"
        )
    return found


def _untrimmed(backend: Any) -> Any:
    """A copy that neither pads nor cuts, and whose offsets are whole."""
    from tokenizers import Tokenizer

    spec = json.loads(backend.to_str())
    spec["padding"] = spec["truncation"] = None
    _set(spec.get("post_processor"), "trim_offsets", False)
    _set(spec.get("pre_tokenizer"), "trim_offsets", False)
    return Tokenizer.from_str(json.dumps(spec))


def _set(tree: Any, key: str, value: Any) -> None:
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _set(part, key, value)
    if isinstance(tree, dict) and key in tree:
        tree[key] = value


def _start(whole: Any) -> tuple[bool, int | None]:
    """(whether it puts a token in front itself, the start token): what it adds counts before what it names."""
    plain = whole("a", add_special_tokens=False)["input_ids"]
    added = whole("a", add_special_tokens=True)["input_ids"]
    places = [n for n in range(len(added) - len(plain) + 1) if added[n : n + len(plain)] == plain]
    front = added[: places[0]] if places else []
    if not front:
        return False, whole.bos_token_id
    return True, whole.bos_token_id if whole.bos_token_id in front else front[0]
