"""The haystack: one sequence of tokens a trial, of which a stretch is taken and in which evidence is placed.

        hay      ... |Sentence one.| Sentence two.| Sentence three.| ...
        stretch          [ as many tokens as there is room for  ]        the same for every depth and arm
        places       0             ^              ^            room      ends of sentences, else of words

A stretch is chosen that begins and ends with a sentence where one of exactly that size exists, so the text before
the evidence at a deeper depth continues the text at a shallower one, and nothing is cut in mid-word.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lengthbench.model import Tokenizer
from lengthbench.retrieval import boundaries, draw, rows
from lengthbench.retrieval.draw import Stream
from lengthbench.retrieval.item import Item
from lengthbench.retrieval.template import fill, variables

N_STARTS = 256
"""Beginnings tried in a generated haystack; a number, so that its size does not decide the stretch."""
NEAR = 0.05
"""A sentence's end further off than this share of the room gives way to a word's."""


@dataclass(frozen=True, eq=False)
class Hay:
    body: bytes
    """The text in UTF-8."""
    tokens: np.ndarray
    """(n,) of the whole text."""
    ends: np.ndarray
    """(n + 1,) bytes that the first n tokens complete."""
    sentences: np.ndarray
    """Token edges behind sentences (prose) or units (generated), ascending."""
    words: np.ndarray
    """Token edges behind words."""
    letters: np.ndarray
    """Token edges between characters."""
    whole_units: bool = False
    """Generated: nothing is ever placed inside a unit."""
    n_starts: int | None = None

    def stretch(self, room: int, stream: Stream) -> int:
        """Where `room` tokens begin; from a seeded sentence on, the first stretch with the cleanest ends."""
        n = len(self.tokens)
        assert 0 < room <= n
        for starts, stops in (
            (self.sentences, self.sentences),
            (self.sentences, self.words),
            (self.sentences, self.letters),
            (self.words, self.words),
            (self.letters, self.letters),
        ):
            starts = starts[: self.n_starts]
            starts = starts[(starts > 0) & (starts + room <= n)]
            fitting = starts[np.isin(starts + room, stops)]
            if len(fitting):
                if self.n_starts:
                    return int(fitting[0])
                wanted = starts[stream.below(len(starts))]
                return int(fitting[np.searchsorted(fitting, wanted) % len(fitting)])
        return 0

    def place(self, begin: int, room: int, depth: float) -> int:
        """Tokens of the stretch in front of something at `depth`."""
        target = depth * room
        found = _nearest(self.sentences, begin, room, target)
        if not self.whole_units and abs(found - target) > NEAR * room:
            other = _nearest(self.words, begin, room, target)
            found = other if abs(other - target) < abs(found - target) else found
        return found

    def text(self, begin: int, room: int) -> str:
        return self.body[self.ends[begin] : self.ends[begin + room]].decode(errors="replace")


def _nearest(edges: np.ndarray, begin: int, room: int, target: float) -> int:
    inside = edges[np.searchsorted(edges, begin) : np.searchsorted(edges, begin + room, side="right")] - begin
    inside = np.unique(np.concatenate([[0], inside, [room]]))
    return int(inside[np.argmin(np.abs(inside - target))])


def tokenized(text: str, tokenizer: Tokenizer, units: np.ndarray | None = None) -> Hay:
    """A text as hay. units: character offsets behind units that are to stay whole; None: prose."""
    tokens, n_bytes = tokenizer.encode(text)
    ends = np.concatenate([[0], np.cumsum(n_bytes, dtype=np.int64)])
    words = boundaries.edges(text, boundaries.words(text), ends)
    letters = boundaries.edges(text, np.arange(len(text) + 1), ends)
    if units is None:
        sentences = boundaries.edges(text, boundaries.sentences(text), ends)
        return Hay(text.encode(), tokens, ends, sentences, words, letters)
    starts = boundaries.edges(text, units, ends)
    return Hay(text.encode(), tokens, ends, starts, words, letters, True, N_STARTS)


class Haystacks:
    """Hay for the items of a task: documents of the run's data, or what the task's units generate."""

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str] = ()) -> None:
        """texts: documents of the run's data, for tasks whose source is prose."""
        self.tokenizer, self.texts = tokenizer, tuple(texts)
        self.prose = [tokenized(text, tokenizer) for text in texts]
        self.generated: dict[Any, Hay] = {}
        self.prepared: dict[Any, Item] = {}
        """Items that are known not to collide with the texts: looking takes a while."""

    def find(self, item: Item, room: int) -> Hay:
        """The hay of this trial, `room` tokens or more if there are any that long; else the longest."""
        if item.task.haystack.source != "prose":
            return self._generated(item, room)
        if not self.prose:
            return tokenized("", self.tokenizer)
        # Drawn by size, so that the same document serves a trial at all lengths that it can fill.
        stream = item.stream("document")
        left = {number: len(hay.tokens) for number, hay in enumerate(self.prose) if len(hay.tokens)}
        while left:
            numbers = list(left)
            at = stream.below(max(1, sum(left.values())))
            number = numbers[int(np.searchsorted(np.cumsum([left[n] for n in numbers]), at, side="right"))]
            if left.pop(number) >= room:
                return self.prose[number]
        return max(self.prose, key=lambda hay: len(hay.tokens))

    def _generated(self, item: Item, room: int) -> Hay:
        n_units = 2 * N_STARTS
        while True:
            hay = self._units(item, n_units)
            edges = hay.sentences
            if len(edges) < n_units or len(hay.tokens) >= room + edges[min(N_STARTS, len(edges) - 1)]:
                return hay
            n_units *= 2

    def _units(self, item: Item, n_units: int) -> Hay:
        key = (item.task.name, item.task.version, item.seed, item.trial, item.redraws, n_units)
        if key not in self.generated:
            parts = list(_texts(item, n_units))
            offsets = np.cumsum([len(part) for part in parts])
            self.generated[key] = tokenized("".join(parts), self.tokenizer, offsets)
        return self.generated[key]


def _texts(item: Item, n_units: int):
    """The first `n_units` units, fewer where the task has no more."""
    task, stream = item.task, item.stream(f"haystack/{item.redraws}")
    if task.documents is not None:
        others = stream.shuffled([r for r in rows.read(task.documents) if r.line != item.line])
        for row in others[:n_units]:
            yield _unit(item, task.haystack.units[0], stream, {"text": row.text})
        return
    seen: dict[str, int] = {}
    made = missed = 0
    while made < n_units and missed < draw.TRIES:
        text = _unit(item, stream.one(task.haystack.units), stream, {})
        if task.haystack.repeats and seen.get(text, 0) >= task.haystack.repeats:
            missed += 1
            continue
        seen[text] = seen.get(text, 0) + 1
        made, missed = made + 1, 0
        yield text


def _unit(item: Item, template: str, stream: Stream, values: dict[str, Any]) -> str:
    used = set(item.used)
    names = [name for name in variables(template) if name in item.task.draw]
    own = {name: draw.fresh(name, item.task.draw[name], stream, used) for name in names}
    return fill(template, {**values, **own})
