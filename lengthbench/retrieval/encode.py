"""A part of a prompt to tokens, as they would stand in the middle of a text.

Parts are encoded one by one and joined, so a part has the same tokens wherever it stands. Tokenizers that put a
space in front of every text (SentencePiece) would do so before each part; a full stop in front takes it, and is
cut off again.
"""

import functools

import numpy as np

from lengthbench.model import Tokenizer

ANCHORS = (".", "a", "\n")
NONE = np.zeros(0, np.int32)
"""No tokens."""


def inside(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """(n,) tokens of `text` behind other text."""
    return _inside(tokenizer, text).copy()


def opening(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """(n,) tokens of `text` at the very beginning."""
    return tokenizer.encode(text)[0] if text else NONE


@functools.lru_cache(maxsize=4096)
def _inside(tokenizer: Tokenizer, text: str) -> np.ndarray:
    if not text:
        return NONE
    for anchor in ANCHORS:
        tokens, n_bytes = tokenizer.encode(anchor + text)
        done = np.cumsum(n_bytes)
        at = int(np.searchsorted(done, len(anchor)))
        # A first token of several that complete a character ends nowhere; so the text's own tokens must be whole.
        if at < len(done) and done[at] == len(anchor) and int(n_bytes[at + 1 :].sum()) == len(text.encode()):
            return tokens[at + 1 :]
    return tokenizer.encode(text)[0]
