"""The suite: a probe made of probes, run as one over one set of windows.

    parts       trials                          results              rows
    ppl         0 .. 79      one plan feeds     0 .. 79      ->      ppl, blocks, positions
    attribute   80 .. 499    what they share    80 .. 499    ->      attribution, ...; rows of ppl.csv and its
                             once                                    kind that stand there already are kept once

So there is one journal, a killed suite resumes as a whole, and a window that two parts want is one pass. Two parts
that would give different numbers under one key of a table are refused before anything is measured.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

from lengthbench.errors import UserError
from lengthbench.model import Card
from lengthbench.probes.losses import Place
from lengthbench.probes.probe import Subject
from lengthbench.run.table import Schema
from lengthbench.trials import Scores, Trial

SHARES = ("fed", "seconds")
"""Columns of which two rows of one key have a share each."""
Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True)
class Part:
    name: str
    """What a message calls it, as in `probe 2 (attribute)`."""
    probe: Any
    """A probe (probe.py)."""
    max_tokens: int | None = None
    """Targets it scores; None: its own default. What is asked for the whole run wins."""


@dataclass(frozen=True)
class Suite:
    parts: tuple[Part, ...]

    command = "run"

    @property
    def schemas(self) -> tuple[Schema, ...]:
        return tuple(dict.fromkeys(schema for part in self.parts for schema in part.probe.schemas))

    @property
    def summaries(self) -> tuple[Schema, ...]:
        """The tables whose statuses are counted: each part's first."""
        return tuple(dict.fromkeys(part.probe.schemas[0] for part in self.parts))

    @property
    def spans(self) -> tuple[int, ...]:
        return tuple(sorted({length for part in self.parts for length in part.probe.spans}))

    @property
    def fed(self) -> tuple[int, ...]:
        return tuple(sorted({length for part in self.parts for length in part.probe.fed}))

    def resolve(self, cards: Sequence[Card]) -> "Suite":
        return self._each(lambda probe: probe.resolve(cards))

    def fit(self, sizes: Sequence[int]) -> "Suite":
        return self._each(lambda probe: probe.fit(sizes))

    def _each(self, change: Any) -> "Suite":
        parts = []
        for part in self.parts:
            with _blamed(part):
                parts.append(replace(part, probe=change(part.probe)))
        return replace(self, parts=tuple(parts))

    def work(self, subject: Subject) -> "Work":
        return Work(self, subject)

    def sentence(self, findings: Sequence[tuple]) -> str:
        """What each part says, in order."""
        said = []
        for number, part in enumerate(self.parts):
            own = [found[number] for found in findings if found[number] is not None]
            said.append(part.probe.sentence(own) if own else "")
        return "\n".join(filter(None, said))


class Work:
    """The parts' work on one model. A trial's key is the number of its part and the part's own trial."""

    def __init__(self, asked: Suite, subject: Subject) -> None:
        self.asked, self.works = asked, []
        for part in asked.parts:
            own = replace(subject, max_tokens=subject.max_tokens or part.max_tokens)
            with _blamed(part):
                self.works.append(part.probe.work(own))
        _check_agreement(asked.parts, self.works)
        self.trials = [replace(t, key=(n, t)) for n, work in enumerate(self.works) for t in work.trials]
        self.notes: list[str] = [note for work in self.works for note in work.notes]

    @property
    def facts(self) -> dict[str, Any]:
        """What the parts add to the manifest: as it is if only one does, else by part."""
        told = {part.name: f for part, w in zip(self.asked.parts, self.works, strict=True) if (f := _facts(w))}
        return next(iter(told.values())) if len(told) == 1 else told

    def reduce(self, trial: Trial, scores: Scores) -> dict[str, Any]:
        number, own = trial.key
        return self.works[number].reduce(own, scores)

    def rows(self, identity: dict[str, Any], results: dict[int, dict[str, Any]]) -> Rows:
        split = self._split(results)
        return merge(self.asked.schemas, [w.rows(identity, r) for w, r in zip(self.works, split, strict=True)])

    def finding(self, results: dict[int, dict[str, Any]]) -> tuple:
        return tuple(w.finding(r) for w, r in zip(self.works, self._split(results), strict=True))

    def _split(self, results: dict[int, dict[str, Any]]) -> list[dict[int, dict[str, Any]]]:
        """Results by trial of the suite -> for each part, by its own trial."""
        found, first = [], 0
        for work in self.works:
            own = range(first, first + len(work.trials))
            found.append({n - first: results[n] for n in own if n in results})
            first = own.stop
        return found


def merge(schemas: Sequence[Schema], parts: Sequence[Rows]) -> Rows:
    """The parts' rows by table, each key once."""
    tables: Rows = {}
    for schema in schemas:
        kept: dict[tuple, dict[str, Any]] = {}
        for rows in parts:
            for row in rows.get(schema.name, ()):
                key = tuple(row[column] for column in schema.key)
                kept[key] = _one(kept[key], row) if key in kept else row
        tables[schema.name] = list(kept.values())
    return tables


def _one(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Two rows of one key: the one with numbers; if both have them, one row with all cells and the cost of both."""
    if first.get("status") != second.get("status"):
        return second if second.get("status") == "ok" else first
    both = {**second, **{name: value for name, value in first.items() if value not in (None, "")}}
    for name in SHARES:
        if first.get(name) is not None and second.get(name) is not None:
            both[name] = first[name] + second[name]
    return both


def _check_agreement(parts: Sequence[Part], works: Sequence[Any]) -> None:
    """Whether what goes under one key is the same in all parts that have it: windows, and options of what they say."""
    windows: dict[tuple, tuple[Part, Counter]] = {}
    options: dict[tuple, tuple[Part, dict[str, Any]]] = {}
    for part, work in zip(parts, works, strict=True):
        for key, own in _windows(part, work.trials).items():
            other, before = windows.setdefault(key, (part, own))
            if before != own:
                raise UserError(f"{other.name} and {part.name} {_difference(key, before, own)}, or make two suites")
        for key, own in _options(part, work).items():
            other, before = options.setdefault(key, (part, own))
            if before != own:
                names = ", ".join(name for name in own if own[name] != before[name])
                raise UserError(
                    f"{other.name} and {part.name} have different values of {names} at length {key[1]}, but its rows "
                    "stand once in a table; make them equal, or make two suites"
                )


def _windows(part: Part, trials: Sequence[Trial]) -> dict[tuple, Counter]:
    """Key of a row -> its windows: how many targets, which tokens, what of them is scored."""
    found: dict[tuple, Counter] = {}
    for trial in trials:
        window = (
            len(trial.scored),
            trial.start,
            trial.budget,
            hash(trial.tokens.tobytes()),
            hash(trial.scored.tobytes()),
        )
        found.setdefault(_row(part, trial.key), Counter())[window] += 1
    return found


def _row(part: Part, key: Any) -> tuple:
    """The row that a trial's sums go to. ppl.csv does not tell base from full: both are nonoverlapping windows."""
    if isinstance(key, Place):
        cell = key.cell
        return cell.protocol, cell.length, cell.stride, "full" if cell.condition == "base" else cell.condition
    return f"{key.task} ({part.probe.mode})", key.length, key.position


def _options(part: Part, work: Any) -> dict[tuple, dict[str, Any]]:
    """Key of rows that every option decides -> the options: what a model's attribution or ladder says of a length."""
    chosen = {name: v for name, v in asdict(part.probe).items() if name not in ("lengths", "bases", "defaulted")}
    if part.probe.command == "attribute":
        return {("attribute", length, work.base): chosen for length in work.lengths}
    return {("context", part.probe.lengths[0], work.stride): chosen} if part.probe.command == "context" else {}


def _difference(key: tuple, before: Counter, own: Counter) -> str:
    if len(key) == 3:
        return f"ask {key[0]} at length {key[1]}, {key[2]}, in different trials; give both the same options"
    counts = [sum(n * size for (size, *_), n in found.items()) for found in (before, own)]
    return (
        f"feed different windows at length {key[1]}, {key[0]} (for {counts[0]:,} and {counts[1]:,} targets), but its "
        "row stands once in a table; give both the same largest length, max_tokens and base"
    )


def _facts(work: Any) -> dict[str, Any]:
    return getattr(work, "facts", {})


@contextmanager
def _blamed(part: Part) -> Iterator[None]:
    try:
        yield
    except UserError as error:
        raise UserError(f"{part.name}: {error}") from None
