"""The prompt of one trial: an item at a length, with its evidence at a depth, in one of four arms.

        before  prefix  hay ... evidence ... hay  question  after  answer prefix  answer
        chat                                                chat                  or output budget
        <------------------------------- length, start token included ---------------------------->

    evidence   as the task has it            absent   filler of as many tokens in its place
    oracle     no haystack at all            decoy    evidence of the same form with another key in its place

Parts are encoded one by one and their tokens joined, so the evidence has the same tokens at every depth.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from lengthbench.errors import UserError
from lengthbench.model import Tokenizer
from lengthbench.retrieval import encode, replacement
from lengthbench.retrieval import item as items
from lengthbench.retrieval.encode import NONE
from lengthbench.retrieval.haystack import Hay, Haystacks
from lengthbench.retrieval.item import AnswerText, Item
from lengthbench.retrieval.occurs import occurs
from lengthbench.tasks import Task

ARMS = ("evidence", "absent", "oracle", "decoy")
LEAST_ROOM = 16
"""Tokens of haystack below which start, middle and end are one place."""
REDRAWS = 50
"""Times an item's values are drawn anew before the haystack is given up."""


class LengthError(UserError):
    """A length that the parts do not leave room for, or that the haystack cannot fill."""


@dataclass(frozen=True, eq=False)
class Frame:
    """What the model's own format puts around the task."""

    start: int | None = None
    """Start token, where the policy wants one."""
    before: np.ndarray = field(default_factory=lambda: NONE)
    """(n,) tokens in front: a chat template's."""
    after: np.ndarray = field(default_factory=lambda: NONE)
    """(n,) tokens between the question and the answer prefix."""
    budget: int | None = None
    """Tokens kept free for generated output, in place of the answer. None: the answer is fed."""
    answer_prefix: bool = True
    """Whether the task's words that lead into the answer are there."""


PLAIN = Frame()


@dataclass(frozen=True, eq=False)
class Answer:
    text: str
    tokens: np.ndarray
    """(n,) sub-answers and the words between them."""
    parts: dict[str, np.ndarray]
    """Sub-answer -> (k,) where its tokens stand in `tokens`; only these are scored."""

    @property
    def scored(self) -> np.ndarray:
        """(m,) of all sub-answers, ascending."""
        return np.sort(np.concatenate(list(self.parts.values())))


@dataclass(frozen=True, eq=False)
class Prompt:
    arm: str
    length: int
    """Tokens in all: start token, every part, the answer or the output budget."""
    tokens: np.ndarray
    """(n,) without the start token; the answer included unless there is a budget."""
    start: int | None
    answer: Answer
    wrong: tuple[Answer, ...]
    """Answers of the same form to put in place of the right one."""
    answer_at: int
    """Where the answer begins in `tokens`."""
    spans: tuple[tuple[int, int], ...]
    """First and behind-the-last token of each piece of evidence, or of what stands in its place."""
    depth: float | None
    """Reached by the first piece that moves: tokens of haystack in front, as a share of all. None: oracle."""
    parts: dict[str, int]
    """Tokens of each part; they sum to `length`."""
    n_answer_tokens: int
    """Fed as the answer, or the output budget."""

    @property
    def n_prompt_tokens(self) -> int:
        """In front of the answer, start token included."""
        return self.length - self.n_answer_tokens

    @property
    def scored(self) -> np.ndarray:
        """(m,) positions in `tokens` of the answer's scored tokens."""
        return self.answer_at + self.answer.scored

    @property
    def sha256(self) -> str:
        """Of the token ids, start token included."""
        ids = self.tokens if self.start is None else np.concatenate([[self.start], self.tokens])
        return hashlib.sha256(ids.astype("<i8").tobytes()).hexdigest()

    def text(self, tokenizer: Tokenizer) -> str:
        return tokenizer.decode(self.tokens)


@dataclass(frozen=True, eq=False)
class _Parts:
    """An item in tokens, evidence and context still apart."""

    prefix: np.ndarray
    evidence: list[np.ndarray]
    context: list[np.ndarray]
    question: np.ndarray
    lead: np.ndarray
    answer: Answer

    def sizes(self, frame: Frame) -> dict[str, int]:
        sizes = {"start": int(frame.start is not None), "before": len(frame.before), "prefix": len(self.prefix)}
        sizes |= {"evidence": sum(map(len, self.evidence)), "context": sum(map(len, self.context))}
        sizes |= {"question": len(self.question), "after": len(frame.after), "answer_prefix": len(self.lead)}
        return sizes | {"answer": len(self.answer.tokens) if frame.budget is None else frame.budget}


def prepare(task: Task, seed: int, trial: int, haystacks: Haystacks) -> Item:
    """The item of a trial, drawn anew while its values occur in the texts that the run brings."""
    key = (task.name, task.version, seed, trial)
    if key not in haystacks.prepared:
        haystacks.prepared[key] = _prepare(task, seed, trial, haystacks)
    return haystacks.prepared[key]


def _prepare(task: Task, seed: int, trial: int, haystacks: Haystacks) -> Item:
    prose = task.haystack.source == "prose" and not task.answer_may_recur
    value = None
    for redraws in range(REDRAWS):
        item = items.make(task, seed, trial, redraws)
        value = _found(_values(item), haystacks.texts) if prose else None
        if value is None:
            return item
    raise UserError(
        f"task {task.name}: '{value}' occurs in the haystack, and so do the values of {REDRAWS} further draws; "
        "give another --data, or more to draw from"
    )


def build(
    item: Item, arm: str, length: int, depth: float, tokenizer: Tokenizer, haystacks: Haystacks, frame: Frame = PLAIN
) -> Prompt:
    """The prompt of `item` with exactly `length` tokens; oracle has its own length and no depth.

    Raises LengthError for a length too small for the parts, or too large for the haystack.
    """
    assert arm in ARMS and 0 <= depth <= 1
    parts = _parts(item, tokenizer, frame)
    sizes = parts.sizes(frame)
    if arm == "oracle":
        return _assemble(item, arm, tokenizer, frame, parts, sizes, NONE, None, depth)
    room = length - sum(sizes.values())
    if room < LEAST_ROOM:
        least = max(length - room + LEAST_ROOM, smallest(item.task, tokenizer, frame, item.seed))
        raise LengthError(
            f"task {item.task.name}: length {length} is too short; with {tokenizer.name} "
            f"the smallest possible is {least}: {length - room} tokens of question, evidence and answer, "
            f"and {LEAST_ROOM} or more of haystack"
        )
    hay = haystacks.find(item, room)
    if len(hay.tokens) < room:
        longest = length - room + len(hay.tokens)
        raise LengthError(
            f"task {item.task.name}: length {length} needs {room:,} tokens of haystack, the longest text has "
            f"{len(hay.tokens):,}; the longest possible is {longest}, or bring a longer text"
        )
    begin = hay.stretch(room, item.stream(f"stretch/{room}"))
    _refuse_collision(item, hay.text(begin, room))
    return _assemble(item, arm, tokenizer, frame, parts, sizes, hay.tokens[begin : begin + room], (hay, begin), depth)


def smallest(task: Task, tokenizer: Tokenizer, frame: Frame = PLAIN, seed: int = 0, n_trials: int = 20) -> int:
    """The smallest length at which each of the first trials has a haystack."""
    drawn = (items.make(task, seed, trial) for trial in range(n_trials))
    return max(sum(_parts(item, tokenizer, frame).sizes(frame).values()) for item in drawn) + LEAST_ROOM


def _parts(item: Item, tokenizer: Tokenizer, frame: Frame) -> _Parts:
    first = encode.inside if len(frame.before) else encode.opening
    return _Parts(
        first(tokenizer, item.prefix),
        [encode.inside(tokenizer, piece.text) for piece in item.evidence],
        [encode.inside(tokenizer, piece.text) for piece in item.context],
        encode.inside(tokenizer, item.question),
        encode.inside(tokenizer, item.answer_prefix) if frame.answer_prefix else NONE,
        _answer(item.answer, tokenizer),
    )


def _answer(answer: AnswerText, tokenizer: Tokenizer) -> Answer:
    tokens, parts, done = [], {}, 0
    for text, name in answer:
        piece = encode.inside(tokenizer, text)
        if name:
            parts[name] = np.concatenate([parts.get(name, NONE), np.arange(done, done + len(piece), dtype=np.int32)])
        tokens.append(piece)
        done += len(piece)
    return Answer(items.text_of(answer), np.concatenate(tokens), parts)


def _assemble(
    item: Item,
    arm: str,
    tokenizer: Tokenizer,
    frame: Frame,
    parts: _Parts,
    sizes: dict[str, int],
    hay: np.ndarray,
    where: tuple[Hay, int] | None,
    depth: float,
) -> Prompt:
    """Join the parts, the pieces put into `hay` at their places."""
    room = len(hay)
    replaced = parts.evidence
    if arm == "absent":
        replaced = [replacement.filler(item, tokenizer, n, len(piece)) for n, piece in enumerate(parts.evidence)]
    elif arm == "decoy":
        replaced = replacement.decoy(item, tokenizer, parts.evidence)
        longer = sum(map(len, replaced)) - sizes["evidence"]
        sizes = sizes | {"evidence": sizes["evidence"] + longer}
        # A decoy of another size is paid for by the end of the haystack, so everything in front of it stays.
        hay = replacement.resized(item, tokenizer, where[0], where[1], room - longer) if where and longer else hay
    moving = sum(piece.at == "spread" for piece in item.evidence)
    placed, moved = [], 0
    for n, (piece, tokens) in enumerate(zip((*item.evidence, *item.context), replaced + parts.context, strict=True)):
        at = piece.at
        if at == "spread":
            at = depth + (1 - depth) * moved / max(1, moving - 1)
            moved += 1
        at = depth if at == "depth" else float(at)
        # Without a haystack the pieces keep the order of their places.
        placed.append((where[0].place(where[1], room, at) if where else at, n, tokens))
    ordered, spans = sorted(placed, key=lambda p: (p[0], p[1])), {}
    joined, done, size = [frame.before, parts.prefix], 0, len(frame.before) + len(parts.prefix)
    for at, n, tokens in ordered:
        piece_of_hay = hay[done : int(at)] if where else NONE
        joined += [piece_of_hay, tokens]
        size += len(piece_of_hay) + len(tokens)
        done += len(piece_of_hay)
        spans[n] = (size - len(tokens), size)
    joined += [hay[done:], parts.question, frame.after, parts.lead]
    answer_at = sum(map(len, joined))
    if frame.budget is None:
        joined.append(parts.answer.tokens)
    tokens = np.concatenate(joined).astype(np.int32)
    for n, piece in enumerate(replaced):
        assert np.array_equal(tokens[slice(*spans[n])], piece), "evidence is not in one piece"
    sizes = sizes | {"hay": len(hay)}
    n_answer = sizes["answer"]
    assert answer_at + n_answer + sizes["start"] == sum(sizes.values())
    first = next((n for n, p in enumerate(item.evidence) if p.at in ("depth", "spread")), 0)
    reached = None if where is None else next(at for at, n, _ in placed if n == first) / room
    wrong = _wrong(item, tokenizer, len(parts.answer.tokens))
    return Prompt(
        arm, sum(sizes.values()), tokens, frame.start, parts.answer, wrong, answer_at,
        tuple(spans[n] for n in range(len(replaced))), reached, sizes, n_answer,
    )  # fmt: skip


def _wrong(item: Item, tokenizer: Tokenizer, size: int) -> tuple[Answer, ...]:
    """Tempting ones, then those nearest in size to the right one, shorter rather than longer."""
    every = [_answer(one, tokenizer) for one in item.wrong]
    drawn = sorted(every[item.tempting :], key=lambda a: (len(a.tokens) > size, abs(len(a.tokens) - size)))
    return (*every[: item.tempting], *drawn)[: max(item.task.n_wrong, item.tempting)]


def _values(item: Item) -> list[str]:
    """What must occur in no text of the run: the answer, its keys, the wrong answers and the decoys'."""
    wrong = (text.strip() for one in item.wrong for text, name in one if name)
    return [*item.answers.values(), *wrong, *(v for v in item.used if not v.startswith("{")), *item.decoy_answers]


def _found(values: Sequence[str], texts: Sequence[str]) -> str | None:
    return next((value for value in values for text in texts if occurs(value, text)), None)


def _refuse_collision(item: Item, text: str) -> None:
    value = None if item.task.answer_may_recur else _found(list(item.answers.values()), [text])
    if value is not None:
        which = f"the answer of line {item.line}" if item.line else "the answer"
        raise UserError(
            f"task {item.task.name}: {which}, '{value}', also occurs in the haystack, so finding it proves nothing; "
            "change the answer or the text, or set answer_may_recur = true"
        )
