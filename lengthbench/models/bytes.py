"""The byte tokenizer: token = byte of the UTF-8 text, so every language costs one token a byte."""

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ByteTokenizer:
    name: str = "bytes"
    vocabulary: int = 256
    start: int | None = None
    """There is no start token."""
    adds_start: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(b"lengthbench bytes 256").hexdigest()

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Token ids (n,) and the bytes each one completes (n,), both int32."""
        tokens = np.frombuffer(text.encode(), np.uint8).astype(np.int32)
        return tokens, np.ones_like(tokens)

    def decode(self, tokens: np.ndarray) -> str:
        return np.asarray(tokens, np.uint8).tobytes().decode(errors="replace")
