"""A tokenizer from a `tokenizer.json` of the tokenizers library, as an alternative to bytes."""

import hashlib
from pathlib import Path

import numpy as np

from lengthbench.errors import UserError


class FileTokenizer:
    adds_start = False

    def __init__(self, path: Path) -> None:
        from tokenizers import Tokenizer

        try:
            self.backend = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise UserError(f"--tokenizer {path}: not a tokenizer.json of the tokenizers library: {error}") from None
        self.name, self.path, self.start = path.name, path, None
        self.vocabulary = self.backend.get_vocab_size()
        self.sha256 = hashlib.sha256(path.read_bytes()).hexdigest()

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        encoded = self.backend.encode(text, add_special_tokens=False)
        return np.array(encoded.ids, np.int32), completed_bytes(text, encoded.offsets)

    def decode(self, tokens: np.ndarray) -> str:
        return self.backend.decode([int(t) for t in tokens], skip_special_tokens=False)


def completed_bytes(text: str, offsets: list[tuple[int, int]]) -> np.ndarray:
    """Character spans of the tokens -> (n,) UTF-8 bytes that each token completes; sums to all of them.

    Tokens that share a character all name it in their span; the last of them completes it. What lies between two
    spans (white space that a tokenizer drops) goes to the token behind it, the rest of the text to the last token.
    """
    if not offsets:
        return np.zeros(0, np.int32)
    begins, ends = np.array(offsets, np.int64).T
    complete = ends.copy()
    complete[:-1] = np.minimum(ends[:-1], np.minimum.accumulate(begins[::-1])[::-1][1:])
    complete = np.maximum.accumulate(np.maximum(complete, 0))
    complete[-1] = len(text)
    lengths = np.array([len(c.encode()) for c in text], np.int64)
    upto = np.concatenate([[0], np.cumsum(lengths)])[complete]
    return np.diff(upto, prepend=0).astype(np.int32)
