"""The context ladder: the loss of fixed targets as a function of how much of the past is visible.

    groups of S targets at the end of each block         rung c: contexts c .. c+S-1
                                                          c = 2S, 4S, 8S, ... and last L-S+1

    best rung   where the loss is lowest
    horizon     the smallest context whose loss is within epsilon of the best rung's

The targets never change, so neither does their difficulty: no early-token effect can enter. With `swap`, rungs
beyond the base length are measured again with all but their last W+S-1 tokens from another document.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lengthbench import windows
from lengthbench.errors import UserError
from lengthbench.model import Card
from lengthbench.probes import blocks, context_tables, losses, perplexity_tables, probe, swap
from lengthbench.probes.losses import Cell
from lengthbench.probes.probe import Subject
from lengthbench.trials import Scores, Trial

TIMES = 16
"""The default length is this many times the training length, as far as the text allows."""
GROUPS = 24
"""Default number of groups of targets."""
END = 32
"""Most targets a group, by default: a ladder starts at two groups of context."""


@dataclass(frozen=True)
class ContextLadder:
    lengths: tuple[int, ...] = ()
    """(Lmax,); empty: 16 times the largest training length."""
    base: int | None = None
    """The length the models are judged to know; None: the training length of each."""
    stride: int | None = None
    """Targets a group; None: an eighth of the base length, at most 32."""
    groups: int = GROUPS
    """Groups of targets, each at the end of a block; fewer where the text has fewer."""
    epsilon: float = 0.01
    """Nats within which a shorter context is as good as the best."""
    swap: bool = False
    """Whether to replace the far context on every rung beyond the base length."""
    defaulted: bool = False
    """Whether nobody asked for this length, so that the text may cut it."""

    command = "context"
    schemas = context_tables.SCHEMAS

    def __post_init__(self) -> None:
        if self.groups < 1:
            raise UserError(f"--groups {self.groups}: it must be 1 or more")
        if not self.epsilon > 0:
            raise UserError(f"--epsilon {self.epsilon}: it must be above 0, for example 0.01")
        for name, value in (("--stride", self.stride), ("--base", self.base)):
            if value is not None and value < 1:
                raise UserError(f"{name} {value}: it must be 1 or more")
        if len(self.lengths) == 1 and self.stride is not None and self.lengths[0] < 3 * self.stride:
            least = 3 * self.stride
            raise UserError(f"--length {self.lengths[0]}: with --stride {self.stride} a ladder needs {least} or more")

    @property
    def spans(self) -> tuple[int, ...]:
        return self.lengths

    @property
    def fed(self) -> tuple[int, ...]:
        return 1, self.lengths[0]

    def resolve(self, cards: Sequence[Card]) -> "ContextLadder":
        found = probe.default_lengths(self, cards, TIMES)
        if found.defaulted:
            found = replace(found, lengths=found.lengths[-1:])
        for card in cards:
            if found.base is None and card.train_length is None:
                raise UserError(f"{card.name}: its training length is unknown; say --base, for example 1024")
            if found.lengths[0] < 3 * found.stride_of(card):
                least = 3 * found.stride_of(card)
                raise UserError(f"--length {found.lengths[0]}: a ladder of {card.name} needs {least} tokens or more")
        return found

    def fit(self, sizes: Sequence[int]) -> "ContextLadder":
        """The default length is halved until the text has five blocks of it."""
        found = self
        while found.defaulted and found.lengths[0] > 6 * END:
            if sum(max(0, n - 1) // found.lengths[0] for n in sizes) >= probe.FEWEST_BLOCKS:
                break
            found = replace(found, lengths=(found.lengths[0] // 2,))
        return found

    def work(self, subject: Subject) -> "Work":
        return Work(self, subject)

    def sentence(self, findings: Sequence[str]) -> str:
        return "\n".join(findings)

    def base_of(self, card: Card) -> int:
        return self.base or card.train_length or 0

    def stride_of(self, card: Card) -> int:
        return self.stride or max(1, min(self.base_of(card) // 8, END))

    def contexts(self, card: Card) -> list[int]:
        """Context of a group's first target on each rung, ascending."""
        stride, longest = self.stride_of(card), self.lengths[0]
        last = longest - stride + 1
        found, context = [], 2 * stride
        while context < last:
            found.append(context)
            context *= 2
        return [*found, last]


class Work:
    """One model's ladder."""

    def __init__(self, asked: ContextLadder, subject: Subject) -> None:
        self.asked, self.subject, card = asked, subject, subject.card
        self.base, self.stride = asked.base_of(card), asked.stride_of(card)
        groups = asked.groups if subject.max_tokens is None else max(1, subject.max_tokens // self.stride)
        self.selection = blocks.select(subject.sizes, asked.spans, groups * asked.lengths[0])
        self.notes = perplexity_tables.notes(subject.texts.name, self.selection, max(subject.sizes))
        self.rungs = [(c, c + self.stride - 1) for c in asked.contexts(card)]
        """Context of the first target and tokens fed, on each rung."""
        self.missing = {fed: why for _, fed in self.rungs if (why := self._missing(fed))}
        self.trials = [t for _, fed in self.rungs if fed not in self.missing for t in self._trials(fed)]

    def _missing(self, fed: int) -> tuple[str, str] | None:
        """No rung can be measured where the text has no block of the whole length."""
        long = probe.missing(self.subject.card, self.asked.lengths[0], self.selection, self.subject.sizes)
        own = probe.missing(self.subject.card, fed, self.selection, self.subject.sizes)
        return own or (long if long and long[0] == "too_short" else None)

    def _trials(self, fed: int) -> list[Trial]:
        documents, start, found = self.subject.documents, self.subject.start, []
        keep = self.base + self.stride - 1
        for block in self.selection.blocks:
            for window in windows.window_end(
                block.first, block.last, self.selection.size, self.stride, fed, start is not None
            ):
                place = documents[block.document], start, block.document, block.number
                found.append(losses.trial(Cell("ladder", fed, self.stride), window, *place))
                if self.asked.swap and fed - (start is not None) > keep:
                    made = losses.trial(Cell("ladder", fed, self.stride, "swap"), window, *place)
                    apart, seed = 2 * self.selection.size, str(self.subject.seed)
                    other = swap.swapped(made, keep, documents, apart, seed)
                    found += [] if other is None else [other]
        return found

    def reduce(self, trial: Trial, scores: Scores) -> dict[str, Any]:
        return {"sums": losses.reduce(trial, scores)}

    def rows(self, identity: dict[str, Any], results: dict[int, dict[str, Any]]) -> dict[str, list[dict]]:
        return context_tables.rows(self, identity, losses.block_sums(self.trials, results))

    def finding(self, results: dict[int, dict[str, Any]]) -> str | None:
        found = context_tables.ladder(self, losses.block_sums(self.trials, results))
        return f"{self.subject.card.name}: {context_tables.verdict(self, found)}" if found else None
