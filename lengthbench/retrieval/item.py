"""An item: what one trial asks, whatever the length, the depth and the tokenizer.

It depends on the task, the seed and the trial's number alone: trial 7 is the same whether or not 0-6 ran.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lengthbench.errors import UserError
from lengthbench.retrieval import draw, rows
from lengthbench.retrieval.draw import Stream
from lengthbench.retrieval.template import fill, pieces, variables
from lengthbench.tasks import Piece, Task

POOL = 4
"""Wrong answers drawn for each one wanted, so that some have as many tokens as the right one."""
N_DECOYS = 16
"""Decoys drawn, for the same reason."""

AnswerText = tuple[tuple[str, str | None], ...]
"""(text, variable) for each sub-answer, (text, None) for words between them."""


@dataclass(frozen=True)
class Placed:
    text: str
    """White space in front included."""
    at: str | float
    """depth, spread, or a place in 0..1."""


@dataclass(frozen=True)
class Item:
    task: Task
    seed: int
    trial: int
    """From 0."""
    redraws: int
    """How often the values were drawn anew, because the haystack held one of them already."""
    prefix: str
    evidence: tuple[Placed, ...]
    context: tuple[Placed, ...]
    question: str
    answer_prefix: str
    answer: AnswerText
    wrong: tuple[AnswerText, ...]
    """More than are asked: the prompt takes those nearest to the answer in tokens. Tempting ones first."""
    tempting: int
    """How many of `wrong` are always taken."""
    decoys: tuple[tuple[str, ...], ...]
    """Candidates of a text for each piece of evidence."""
    decoy_answers: tuple[str, ...]
    """What each candidate would have as the whole answer."""
    used: frozenset[str]
    """Values the haystack must not have."""
    line: int | None = None
    """The row of `documents` it asks about."""

    @property
    def answers(self) -> dict[str, str]:
        """Sub-answers by variable, without the white space around them."""
        return {name: text.strip() for text, name in self.answer if name}

    @property
    def answer_text(self) -> str:
        return text_of(self.answer)

    def stream(self, purpose: str) -> Stream:
        """A stream of numbers that is this trial's own, whatever was redrawn."""
        return Stream("lengthbench", self.task.name, self.task.version, self.seed, self.trial, purpose)


def text_of(answer: AnswerText) -> str:
    return "".join(text for text, _ in answer).strip()


def make(task: Task, seed: int, trial: int, redraws: int = 0) -> Item:
    """Trial number `trial` of the task; another number of redraws gives other values."""
    stream = Stream("lengthbench", task.name, task.version, seed, trial, "values", redraws)
    used: set[str] = set()
    row = _row(task, seed, trial)
    given: dict[str, Any] = {} if row is None else {"text": row.text, "question": row.question, "answer": row.answer}
    values = _values(task, stream, used, *_templates(task)) | given
    evidence = tuple(Placed(fill(p.text, values), _at(p, stream)) for p in task.evidence)
    context = tuple(placed for p in task.context for placed in _context(task, p, values, stream, used))
    tempting = [pieces(text, values) for text in task.wrong]
    right = pieces(task.answer, values)
    tempting = [one for one in tempting if text_of(one) != text_of(right)]
    if row is not None:
        tempting += [pieces(task.answer, values | {"answer": wrong}) for wrong in row.wrong]
    drawn = _wrong(task, values, right, tempting, stream, row)
    templates = task.decoy or tuple(p.text for p in task.evidence)
    decoys = []
    for _ in range(1 if row is not None else N_DECOYS):
        other = values | _values(task, stream, set(used), *_templates(task)) | _other_row(task, row, stream)
        decoys.append((tuple(fill(t, other) for t in templates), text_of(pieces(task.answer, other))))
    return Item(
        task, seed, trial, redraws, fill(task.prefix, values), evidence, context,
        fill(task.question, values), fill(task.answer_prefix, values), right, (*tempting, *drawn), len(tempting),
        tuple(texts for texts, _ in decoys), tuple(answer for _, answer in decoys), frozenset(used),
        None if row is None else row.line,
    )  # fmt: skip


def _templates(task: Task) -> tuple[str, ...]:
    """Everything whose variables are the item's own; those of repeated context and of the haystack are drawn apart."""
    once = [p.text for p in task.context if p.count == 1]
    own = (task.prefix, task.question, task.answer_prefix, task.answer, *(p.text for p in task.evidence))
    return (*own, *once, *task.wrong)


def _values(task: Task, stream: Stream, used: set[str], *templates: str) -> dict[str, Any]:
    names = [name for name in variables(*templates) if name in task.draw]
    return {name: draw.fresh(name, task.draw[name], stream, used) for name in names}


def _at(piece: Piece, stream: Stream) -> str | float:
    return stream.below(10**6) / 10**6 if piece.at == "scatter" else piece.at


def _context(task: Task, piece: Piece, values: Mapping[str, Any], stream: Stream, used: set[str]):
    for _ in range(piece.count):
        own = _values(task, stream, used, piece.text) if piece.count > 1 else {}
        yield Placed(fill(piece.text, {**values, **own}), _at(piece, stream))


def _wrong(task: Task, values, right: AnswerText, tempting: list, stream: Stream, row: rows.Row | None):
    """Answers of the form of the right one; every sub-answer is another, but where nothing is left to draw."""
    wanted = max(0, task.n_wrong - len(tempting))
    seen = {text_of(right), *map(text_of, tempting)}
    found: list[AnswerText] = []
    names = [name for name in variables(task.answer) if name in task.draw]
    others = [] if row is None else stream.shuffled(rows.read(_path(task)))
    answers = [r.answer for r in others if r.answer]
    missed = 0
    while len(found) < wanted * POOL and missed < draw.TRIES and (row is None or answers):
        other = {name: draw.value(task.draw[name], stream) for name in names}
        if row is not None:
            other["answer"] = answers.pop()
        candidate = pieces(task.answer, {**values, **other})
        same = any(str(values[name]) == str(v) for name, v in other.items())
        if same or text_of(candidate) in seen:
            missed += 1
            continue
        missed = 0
        seen.add(text_of(candidate))
        found.append(candidate)
    if len(found) < wanted:
        raise UserError(
            f"task {task.name}: only {len(found) + len(tempting)} wrong answers can be made, n_wrong = {task.n_wrong}; "
            "lower it, or give more to draw from"
        )
    return found


def _row(task: Task, seed: int, trial: int) -> rows.Row | None:
    if task.documents is None:
        return None
    asked = [row for row in rows.read(task.documents) if row.answer]
    return Stream("lengthbench", task.name, seed, "rows").shuffled(asked)[trial % len(asked)]


def _other_row(task: Task, row: rows.Row | None, stream: Stream) -> dict[str, Any]:
    """What another row says, for a decoy."""
    if row is None:
        return {}
    others = [r for r in rows.read(_path(task)) if r.line != row.line]
    if not others:
        raise UserError(f"task {task.name}: documents has a single row, so there is no haystack and no decoy; add rows")
    other = stream.one(others)
    return {"text": other.text, "answer": other.answer or ""}


def _path(task: Task):
    assert task.documents is not None
    return task.documents
