"""Text before and after the tokenizer: documents with a name, then their tokens and the bytes of each."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from lengthbench.errors import UserError
from lengthbench.model import Tokenizer


@dataclass(frozen=True)
class Text:
    name: str
    """A book, a file below its folder, or the row it came from: `austen_emma`, `b/c.txt`, `line 7`."""
    text: str
    """As it stands in the source: newlines untouched, nothing stripped."""


@dataclass(frozen=True)
class Texts:
    name: str
    """The data as the user wrote it."""
    documents: tuple[Text, ...]
    notes: tuple[str, ...] = ()
    """What a person should know of how the text was read, a sentence each."""
    read_as: dict[str, Any] = field(default_factory=dict)
    """Split, column and joining, as resolved."""

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """UTF-8 bytes of each document."""
        return tuple(len(document.text.encode()) for document in self.documents)

    @cached_property
    def sha256(self) -> str:
        """Of names and texts in order, each behind its size, so that a letter cannot change sides unseen."""
        total = hashlib.sha256()
        for document in self.documents:
            for part in (document.name.encode(), document.text.encode()):
                total.update(len(part).to_bytes(8, "big") + part)
        return total.hexdigest()

    @property
    def facts(self) -> dict[str, Any]:
        """What the manifest says of the data."""
        counted = {"n_docs": len(self.documents), "n_bytes": sum(self.sizes), "sha256": self.sha256}
        return {**counted, **self.read_as, "notes": list(self.notes)}


@dataclass(frozen=True, eq=False)
class Document:
    name: str
    tokens: np.ndarray
    """(n,) int32"""
    n_bytes: np.ndarray
    """(n,) int32, the UTF-8 bytes each token completes; they sum to the bytes of the text."""


def tokenize(texts: Texts, tokenizer: Tokenizer) -> list[Document]:
    """Each text as one document of tokens, without special tokens. A text may give none; none is left out."""
    return [_document(text, tokenizer) for text in texts.documents]


def joined(documents: Sequence[Text], separator: str = "\n\n") -> Text:
    """All of them as one document, a blank line between two."""
    return Text("joined", separator.join(document.text for document in documents))


def _document(text: Text, tokenizer: Tokenizer) -> Document:
    tokens, n_bytes = tokenizer.encode(text.text)
    size = len(text.text.encode())
    assert len(tokens) == len(n_bytes), f"{text.name}: {len(tokens)} tokens, bytes of {len(n_bytes)}"
    # A tokenizer that drops white space gives no token for "\n", so nothing there can carry its bytes.
    assert len(tokens) == 0 or int(n_bytes.sum()) == size, f"{text.name}: bytes of tokens do not sum to {size}"
    if len(tokens) and int(tokens.max()) >= tokenizer.vocabulary:
        raise UserError(
            f"{text.name}: the tokenizer {tokenizer.name} gives token {int(tokens.max())}, the model knows "
            f"{tokenizer.vocabulary}; the two do not belong together"
        )
    return Document(text.name, tokens.astype(np.int32, copy=False), n_bytes.astype(np.int32, copy=False))
