"""What stands in place of the evidence: filler of as many tokens, or a decoy of the same form with another key."""

from collections.abc import Sequence

import numpy as np

from lengthbench.model import Tokenizer
from lengthbench.retrieval import encode
from lengthbench.retrieval.draw import Stream, fresh
from lengthbench.retrieval.encode import NONE
from lengthbench.retrieval.haystack import Hay, tokenized
from lengthbench.retrieval.item import Item
from lengthbench.retrieval.template import fill, variables


def filler(item: Item, tokenizer: Tokenizer, number: int, size: int) -> np.ndarray:
    """(size,) tokens: whole sentences of the task's filler where they fit, else whole words."""
    key = (tokenizer.sha256, repr(item.task), item.seed, item.trial, item.redraws, number, size)
    if key not in _MADE:
        if len(_MADE) >= KEPT:
            _MADE.clear()
        _MADE[key] = _filler(item, tokenizer, number, size)
    return _MADE[key]


_MADE: dict[tuple, np.ndarray] = {}
KEPT = 4096
"""Fillers remembered: the same stands in at every depth and length of a trial."""


def _filler(item: Item, tokenizer: Tokenizer, number: int, size: int) -> np.ndarray:
    stream = item.stream(f"filler/{number}")
    if not size:
        return NONE
    text = ""
    while True:
        text += "".join(_fresh(item, s, stream) for _ in range(40) for s in stream.shuffled(item.task.filler))
        hay = tokenized(text, tokenizer)
        if len(hay.tokens) > 3 * size:
            begin = hay.stretch(size, stream)
            return hay.tokens[begin : begin + size]


def _fresh(item: Item, sentence: str, stream: Stream) -> str:
    """A sentence of filler with values that the item does not have."""
    used, task = set(item.used), item.task
    own = {name: fresh(name, task.draw[name], stream, used) for name in variables(sentence)}
    return fill(sentence, own)


def decoy(item: Item, tokenizer: Tokenizer, evidence: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The candidate nearest in size."""
    every = [[encode.inside(tokenizer, text) for text in texts] for texts in item.decoys]
    size = sum(map(len, evidence))
    return min(every, key=lambda pieces: abs(sum(map(len, pieces)) - size))


def resized(item: Item, tokenizer: Tokenizer, hay: Hay, begin: int, room: int) -> np.ndarray:
    """(room,) tokens of the stretch, cut behind a character or running on; filler where the text is at its end."""
    at = hay.letters[np.searchsorted(hay.letters, begin + room, side="right") - 1]
    tokens = hay.tokens[begin : max(begin, int(at))]
    return np.concatenate([tokens, filler(item, tokenizer, -1, room - len(tokens))])
