"""Perplexity at growing lengths, on the same targets at every length and under every protocol.

    nll = sum of losses / number of targets;  ppl = exp(nll)
    bits_per_byte = nll_sum / (ln 2 n_bytes)

A target's loss also goes to the bucket of its context (1, 2, 3-4, 5-8, ...), which shows where in a window the
losses come from. The `hf` protocol has targets of its own, on the joined stream.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from lengthbench import lengths as spelled
from lengthbench import windows
from lengthbench.errors import UserError
from lengthbench.model import Card
from lengthbench.probes import losses, perplexity_tables, probe, verdict
from lengthbench.probes.blocks import Selection
from lengthbench.probes.losses import Cell
from lengthbench.probes.probe import Subject
from lengthbench.trials import Scores, Trial

PROTOCOLS = ("nonoverlapping", "sliding", "hf")
TARGETS = 49_152
"""Default of --max-tokens; five blocks where those are more."""
TIMES = 32
"""Default lengths reach this many times the training length, as far as the text allows."""


@dataclass(frozen=True)
class Perplexity:
    lengths: tuple[int, ...] = ()
    """Empty: the training length x 1, 2, 4 .. 32."""
    protocols: tuple[str, ...] = ("nonoverlapping",)
    stride: int | None = None
    """Targets a sliding window; None: an eighth of each length."""
    defaulted: bool = False
    """Whether nobody asked for these lengths, so that the text may cut them."""

    command = "ppl"
    schemas = perplexity_tables.SCHEMAS

    def __post_init__(self) -> None:
        for protocol in self.protocols:
            if protocol not in PROTOCOLS:
                raise UserError(f"--protocol '{protocol}': it is one of {', '.join(PROTOCOLS)}")
        if self.stride is not None and self.lengths and not 1 <= self.stride <= min(self.lengths):
            raise UserError(
                f"--stride {self.stride}: it must be between 1 and the smallest length, {min(self.lengths)}; "
                "a larger stride would skip text"
            )

    @property
    def spans(self) -> tuple[int, ...]:
        return self.lengths

    @property
    def fed(self) -> tuple[int, ...]:
        return self.spans

    def resolve(self, cards: Sequence[Card]) -> "Perplexity":
        found = probe.default_lengths(self, cards, TIMES)
        spelled.block(found.lengths)
        return found

    def fit(self, sizes: Sequence[int]) -> "Perplexity":
        return probe.trim(self, sizes)

    def work(self, subject: Subject) -> "Work":
        return Work(self, subject)

    def sentence(self, findings: Sequence[verdict.Change]) -> str:
        return verdict.sentence(findings)

    def cells(self) -> list[Cell]:
        return [Cell(p, n, self._stride(p, n)) for p in self.protocols for n in self.lengths]

    def _stride(self, protocol: str, length: int) -> int:
        return length if protocol == "nonoverlapping" else self.stride or max(1, length // 8)

    def trials(self, documents: Sequence, selection: Selection, start: int | None, limit: int | None) -> list[Trial]:
        """Trials of every cell that the text can fill and whose length the model can be fed.

        documents: with `tokens` and `n_bytes`, both (n,); start: token in front of every window, or None.
        """
        trials = []
        for cell in self.cells():
            if cell.length not in selection.lengths or (limit is not None and cell.length > limit):
                continue
            if cell.protocol == "hf":
                trials += _stream_trials(cell, documents, selection, start)
            else:
                trials += block_trials(cell, documents, selection, start)
        return trials


class Work:
    """One model's sweep."""

    def __init__(self, asked: Perplexity, subject: Subject) -> None:
        self.asked, self.subject = asked, subject
        self.selection = probe.select(subject, asked.spans, TARGETS)
        self.notes = perplexity_tables.notes(subject.texts.name, self.selection, max(subject.sizes))
        self.trials = asked.trials(subject.documents, self.selection, subject.start, subject.card.limit)

    def reduce(self, trial: Trial, scores: Scores) -> dict[str, Any]:
        return {"sums": losses.reduce(trial, scores)}

    def rows(self, identity: dict[str, Any], results: dict[int, dict[str, Any]]) -> dict[str, list[dict]]:
        subject = self.subject
        missing = {
            cell: why
            for cell in self.asked.cells()
            if (why := probe.missing(subject.card, cell.length, self.selection, subject.sizes))
        }
        return perplexity_tables.rows(
            identity,
            self.asked.cells(),
            losses.block_sums(self.trials, results),
            losses.n_blocks(self.trials),
            missing,
            [d.name for d in subject.documents],
            subject.seed,
        )

    def finding(self, results: dict[int, dict[str, Any]]) -> verdict.Change | None:
        card, sums = self.subject.card, losses.block_sums(self.trials, results)
        expected, found = losses.n_blocks(self.trials), Counter(block.cell for block in sums)
        sums = [block for block in sums if found[block.cell] == expected[block.cell]]  # a killed run has parts of cells
        return verdict.change(card.name, card.train_length, card.limit, self.asked.cells(), sums, self.subject.seed)


def block_trials(cell: Cell, documents: Sequence, selection: Selection, start: int | None) -> list[Trial]:
    """The cell's windows over every block; nonoverlapping is sliding with a stride of its length."""
    trials = []
    for block in selection.blocks:
        for window in windows.sliding(block.first, block.last, cell.length, cell.stride, start is not None):
            clipped = windows.clipped(window, cell.stride, start is not None) if cell.protocol == "sliding" else 0
            document = documents[block.document]
            trials.append(losses.trial(cell, window, document, start, block.document, block.number, clipped))
    return trials


def _stream_trials(cell: Cell, documents: Sequence, selection: Selection, start: int | None) -> list[Trial]:
    """`hf` on the documents joined end to end, as many targets as the other protocols score."""
    tokens = np.concatenate([d.tokens for d in documents])
    n_bytes = np.concatenate([d.n_bytes for d in documents])
    if len(selection.blocks) < selection.n_available:
        tokens = tokens[: len(selection.blocks) * selection.size + 1]
    stream = SimpleNamespace(tokens=tokens, n_bytes=n_bytes)
    cut = windows.hf(len(tokens), cell.length, cell.stride)
    return [losses.trial(cell, w, stream, start, 0, (w.first - 1) // selection.size) for w in cut]
