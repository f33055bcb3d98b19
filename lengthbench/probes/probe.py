"""The probe: what builds trials and makes rows of their losses; it never sees a model's inside.

    probe (parameters) -> resolve (the cards) -> fit (sizes of the documents) -> work (one model) -> rows, finding
                                                                                  sentence (findings of all models)

A probe is a frozen dataclass in a file of its own; measure.py runs any of them by these methods alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

from lengthbench import lengths
from lengthbench.errors import UserError
from lengthbench.model import Card, Tokenizer
from lengthbench.probes import blocks
from lengthbench.run.table import Schema
from lengthbench.trials import Scores, Trial

FEWEST_BLOCKS = 5
"""Blocks that a default must leave, so that there are intervals."""


@dataclass(frozen=True, eq=False)
class Subject:
    """One model, ready to be measured on the run's text."""

    card: Card
    tokenizer: Tokenizer
    documents: Sequence[Any]
    """Each with `name`, `tokens` (n,) and `n_bytes` (n,)."""
    texts: Any
    """The texts before the tokenizer (corpora/text.py)."""
    start: int | None
    """Token in front of every window."""
    max_tokens: int | None
    """Targets asked for; None: the probe's own default."""
    seed: int

    generates: bool = False
    """Whether the model can continue a text."""

    @property
    def sizes(self) -> list[int]:
        """Tokens of each document."""
        return [len(d.tokens) for d in self.documents]


class Work(Protocol):
    """The trials of one model and what becomes of their results."""

    trials: list[Trial]
    notes: list[str]
    """What a person should know before the run: of the text, of the choices made."""

    def reduce(self, trial: Trial, scores: Scores) -> dict[str, Any]:
        """What the journal keeps of a trial, as JSON."""
        ...

    def rows(self, identity: dict[str, Any], results: dict[int, dict[str, Any]]) -> dict[str, list[dict]]:
        """Rows by table of what is finished. identity: the model's own columns."""
        ...

    def finding(self, results: dict[int, dict[str, Any]]) -> Any:
        """What the sentence says of this model; None: nothing."""
        ...


class Probe(Protocol):
    @property
    def command(self) -> str: ...
    @property
    def schemas(self) -> tuple[Schema, ...]:
        """Its tables; the first is the summary, with a status in each row."""
        ...

    @property
    def spans(self) -> tuple[int, ...]:
        """Lengths the text is cut for, ascending."""
        ...

    @property
    def fed(self) -> tuple[int, ...]:
        """Lengths of windows, ascending: no model is run that can be fed none of them."""
        ...

    def resolve(self, cards: Sequence[Card]) -> "Probe":
        """The probe with defaults that come from the models. Raises UserError for what cannot be measured."""
        ...

    def fit(self, sizes: Sequence[int]) -> "Probe":
        """The probe with defaults cut to what documents of these sizes can carry."""
        ...

    def work(self, subject: Subject) -> Work: ...

    def sentence(self, findings: Sequence[Any]) -> str: ...


P = TypeVar("P", bound=Any)


def default_lengths(probe: P, cards: Sequence[Card], times: int) -> P:
    """Training length x 1, 2, 4 .. `times` for each card, where no lengths were asked for."""
    if probe.lengths:
        return probe
    known = sorted({c.train_length for c in cards if c.train_length})
    if not known:
        raise UserError(f"{cards[0].name}: its training length is unknown; say --lengths, for example 512..8192")
    found = tuple(sorted({n << k for n in known for k in range(times.bit_length())}))
    return replace(probe, lengths=found, defaulted=True)


def trim(probe: P, sizes: Sequence[int]) -> P:
    """Default lengths end where the text has fewer than five blocks."""
    if not probe.defaulted:
        return probe
    known = probe.lengths
    while len(known) > 1 and sum(max(0, n - 1) // lengths.block(known) for n in sizes) < FEWEST_BLOCKS:
        known = known[:-1]
    return replace(probe, lengths=known)


def select(subject: Subject, spans: tuple[int, ...], default: int) -> blocks.Selection:
    """The blocks to score: `default` targets, or five blocks where those are more, unless told otherwise."""
    most = subject.max_tokens or max(default, FEWEST_BLOCKS * lengths.block(spans))
    return blocks.select(subject.sizes, spans, most)


def missing(card: Card, length: int, selection: blocks.Selection, sizes: Sequence[int]) -> tuple[str, str] | None:
    """Status and reason of a length that cannot be run; None if it can."""
    if card.limit is not None and length > card.limit:
        return "unsupported", beyond(card, length)
    if length in selection.too_short:
        return "too_short", f"the longest document has {max(sizes)} tokens, length {length} needs {length + 1}"
    return None


def beyond(card: Card, length: int) -> str:
    return f"its {card.scheme} positions end at {card.limit}, length {length} was asked for"
