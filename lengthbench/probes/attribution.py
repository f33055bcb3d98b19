"""What moves perplexity from the base length W to a longer L: relief of early tokens, or use of far ones.

    base   nonoverlapping at W                  contexts 1..W
    cut    inside the L-window, <= W tokens fed contexts 1..W, then W-S+1..W
    full   nonoverlapping at L                  contexts 1..L

    total D = base - full     early token E = base - cut     beyond base G = cut - full      D = E + G

and on the last targets of each L-window, where full has most context,

    swap   L tokens fed, all but the last W+S-1 from another document
    length effect = cut - swap        content use = swap - full

Only content use above 0 shows that the model reads what stands further than W away. Method `sliding` is that of
Press et al. 2022, appendix B: curse(X) = nonoverlapping(X) - sliding(X), E = curse(W) - curse(L), G = sliding(W) -
sliding(L).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lengthbench import lengths as spelled
from lengthbench import windows
from lengthbench.errors import UserError
from lengthbench.model import Card
from lengthbench.probes import attribution_verdict, losses, perplexity, probe, swap
from lengthbench.probes.attribution_tables import SCHEMAS, Tables
from lengthbench.probes.losses import Cell
from lengthbench.probes.probe import Subject
from lengthbench.probes.targets import pack
from lengthbench.trials import Scores, Trial

METHODS = ("cut", "sliding")
TARGETS = 32_768
"""Default of --max-tokens; five blocks where those are more."""
TIMES = 16
"""Default lengths reach this many times the training length, as far as the text allows."""
END = 64
"""Most targets at a window's end for the three-way split."""


@dataclass(frozen=True)
class Attribution:
    lengths: tuple[int, ...] = ()
    """Empty: the training length x 1, 2, 4 .. 16."""
    base: int | None = None
    """The length the models are judged to know; None: the training length of each."""
    methods: tuple[str, ...] = ("cut",)
    stride: int | None = None
    """Targets a cut or sliding window; None: a quarter of the base length for cut, an eighth for sliding."""
    end_stride: int | None = None
    """Targets at a window's end for the three-way split; None: half of the base length, at most 64."""
    sample: int = 1
    """Only one in so many cut groups is measured."""
    swap: bool = True
    """Whether to replace the far context, which alone can show that it is read."""
    top: int = 50
    """Targets in the table of the largest content use."""
    key_gain: float = 2.0
    key_loss: float = 2.0
    """LongPPL's key tokens: loss of cut above that of full by more, and of full below. In nats."""
    defaulted: bool = False
    """Whether nobody asked for these lengths, so that the text may cut them."""
    bases: tuple[int, ...] = ()
    """Base lengths of all models, once they are known."""

    command = "attribute"
    schemas = SCHEMAS

    def __post_init__(self) -> None:
        for method in self.methods:
            if method not in METHODS:
                raise UserError(f"--method '{method}': it is one of {', '.join(METHODS)}")
        for name, value in (("--base", self.base), ("--stride", self.stride), ("--end-stride", self.end_stride)):
            if value is not None and value < 1:
                raise UserError(f"{name} {value}: it must be 1 or more")
        if self.sample < 1:
            raise UserError(f"--sample {self.sample}: one in so many groups is measured, so it must be 1 or more")
        if self.top < 0:
            raise UserError(f"--top {self.top}: it must be 0 or more")

    @property
    def spans(self) -> tuple[int, ...]:
        return tuple(sorted({*self.lengths, *self.bases}))

    @property
    def fed(self) -> tuple[int, ...]:
        return self.spans

    def resolve(self, cards: Sequence[Card]) -> "Attribution":
        known = self if self.base is None else replace(self, bases=(self.base,))
        found = probe.default_lengths(known, cards, TIMES)
        if found.defaulted and self.base is not None:
            found = replace(found, lengths=tuple(sorted({self.base << k for k in range(TIMES.bit_length())})))
        found = replace(found, bases=tuple(sorted({found.base_of(card) for card in cards})))
        spelled.block(found.spans)
        for base in found.bases:
            if self.stride is not None and self.stride > base:
                raise UserError(f"--stride {self.stride}: it must be at most the base length, {base}")
            if self.end_stride is not None and self.end_stride > base:
                raise UserError(f"--end-stride {self.end_stride}: it must be at most the base length, {base}")
        return found

    def fit(self, sizes: Sequence[int]) -> "Attribution":
        """Default lengths are cut to what the text can carry, but never to a single one."""
        found = probe.trim(self, sizes)
        return found if len(found.lengths) > 1 else replace(found, lengths=self.lengths[:2])

    def work(self, subject: Subject) -> "Work":
        return Work(self, subject)

    def sentence(self, findings: Sequence[list[attribution_verdict.Verdict]]) -> str:
        return "\n".join(str(found[-1]) for found in findings if found)

    def base_of(self, card: Card) -> int:
        """W for this model: as asked, or its training length, or the smallest length if no other is longer."""
        wanted = self.base or card.train_length
        if wanted is None:
            raise UserError(f"{card.name}: its training length is unknown; say --base, for example {min(self.lengths)}")
        return wanted if wanted < max(self.lengths) else min(self.lengths)

    def stride_of(self, method: str, base: int) -> int:
        return self.stride or max(1, base // (4 if method == "cut" else 8))

    def end_of(self, base: int, length: int) -> int:
        return min(self.end_stride or max(1, min(base // 2, END)), length - base)


class Work:
    """One model's attribution."""

    def __init__(self, asked: Attribution, subject: Subject) -> None:
        self.asked, self.subject, card = asked, subject, subject.card
        self.base = asked.base_of(card)
        self.selection = probe.select(subject, asked.spans, TARGETS)
        self.lengths = [n for n in asked.lengths if n > self.base]
        self.notes = perplexity.perplexity_tables.notes(subject.texts.name, self.selection, max(subject.sizes))
        wanted = asked.base or card.train_length
        if wanted != self.base:
            self.notes.append(f"{card.name}: no length is beyond {wanted}; {self.base} is taken as its base length")
        if not self.lengths:
            raise UserError(f"--lengths {asked.lengths[0]}: attribution compares lengths, give two or more")
        self.missing = {n: why for n in self.lengths if (why := self._missing(n))}
        self.trials: list[Trial] = []
        if card.limit is None or self.base <= card.limit:
            self._add(Cell("nonoverlapping", self.base, self.base, "base"))
        for length in self.lengths:
            if length not in self.missing:
                self._add_length(length)

    def _missing(self, length: int) -> tuple[str, str] | None:
        base = probe.missing(self.subject.card, self.base, self.selection, self.subject.sizes)
        return base or probe.missing(self.subject.card, length, self.selection, self.subject.sizes)

    def _add_length(self, length: int) -> None:
        asked, base = self.asked, self.base
        self._add(Cell("nonoverlapping", length, length, "full"))
        if "cut" in asked.methods:
            self._add(Cell("cut", length, asked.stride_of("cut", base), "cut"))
            self._add_end(length)
        if "sliding" in asked.methods:
            for size in (base, length):
                cell = Cell("sliding", size, asked.stride_of("sliding", base), "full")
                if all(t.key.cell != cell for t in self.trials):
                    self._add(cell)

    def _add(self, cell: Cell) -> None:
        if self.base in self.selection.lengths and cell.length in self.selection.lengths:
            documents, start = self.subject.documents, self.subject.start
            if cell.protocol != "cut":
                self.trials += perplexity.block_trials(cell, documents, self.selection, start)
            else:
                self.trials += self._cut_trials(cell)

    def _cut_trials(self, cell: Cell) -> list[Trial]:
        """Windows of `cut`; of the sliding ones one in `sample`, the same ones for every length."""
        documents, start, trials = self.subject.documents, self.subject.start, []
        for block in self.selection.blocks:
            for window in windows.cut(block.first, block.last, cell.length, self.base, cell.stride, start is not None):
                near = (window.first - block.first) % cell.length < self.base
                group = (window.first - block.first) // cell.stride
                if near or (group + block.number + block.document) % self.asked.sample == 0:
                    document = documents[block.document]
                    trials.append(losses.trial(cell, window, document, start, block.document, block.number))
        return trials

    def _add_end(self, length: int) -> None:
        """The last targets of each window three times: with W tokens, with L, and with L that say nothing."""
        if not self.asked.swap:
            return
        documents, base, started = self.subject.documents, self.base, self.subject.start is not None
        stride = self.asked.end_of(base, length)
        for block in self.selection.blocks:
            for condition, fed in (("cut", base), ("full", length), ("swap", length)):
                cell = Cell("window_end", length, stride, condition)
                for window in windows.window_end(block.first, block.last, length, stride, fed, started):
                    document = documents[block.document]
                    made = losses.trial(cell, window, document, self.subject.start, block.document, block.number)
                    if condition == "swap":
                        made = swap.swapped(
                            made, base + stride - 1, documents, 2 * self.selection.size, str(self.subject.seed)
                        )
                    if made is not None:
                        self.trials.append(made)

    def reduce(self, trial: Trial, scores: Scores) -> dict[str, Any]:
        return {"sums": losses.reduce(trial, scores), "nll": pack(scores.nll)}

    def rows(self, identity: dict[str, Any], results: dict[int, dict[str, Any]]) -> dict[str, list[dict]]:
        return self._tables(results).rows(identity)

    def finding(self, results: dict[int, dict[str, Any]]) -> list[attribution_verdict.Verdict]:
        return self._tables(results).verdicts()

    def _tables(self, results: dict[int, dict[str, Any]]) -> Tables:
        return Tables(self, results)
