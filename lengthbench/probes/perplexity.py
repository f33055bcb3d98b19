"""Perplexity at growing lengths, on the same targets at every length and under every protocol.

    nll = sum of losses / number of targets;  ppl = exp(nll)
    bits_per_byte = nll_sum / (ln 2 n_bytes)

A target's loss also goes to the bucket of its context (1, 2, 3-4, 5-8, ...), which shows where in a window the
losses come from. The `hf` protocol has targets of its own, on the joined stream.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lengthbench import stats, windows
from lengthbench.errors import UserError
from lengthbench.probes.blocks import Selection
from lengthbench.trials import Scores, Trial

PROTOCOLS = ("nonoverlapping", "sliding", "hf")


@dataclass(frozen=True)
class Cell:
    """One row of ppl.csv for one model."""

    protocol: str
    length: int
    stride: int


@dataclass(frozen=True)
class Place:
    """Which cell and block a trial belongs to, and what its targets are."""

    cell: Cell
    document: int
    block: int
    n_bytes: int
    """UTF-8 bytes of the scored tokens' text."""
    n_clipped: int


@dataclass(frozen=True)
class Perplexity:
    lengths: tuple[int, ...]
    protocols: tuple[str, ...] = ("nonoverlapping",)
    stride: int | None = None
    """Targets a sliding window; None: an eighth of each length."""

    def __post_init__(self) -> None:
        for protocol in self.protocols:
            if protocol not in PROTOCOLS:
                raise UserError(f"--protocol '{protocol}': it is one of {', '.join(PROTOCOLS)}")
        if self.stride is not None and not 1 <= self.stride <= min(self.lengths):
            raise UserError(
                f"--stride {self.stride}: it must be between 1 and the smallest length, {min(self.lengths)}; "
                "a larger stride would skip text"
            )

    def cells(self) -> list[Cell]:
        return [Cell(p, n, self._stride(p, n)) for p in self.protocols for n in self.lengths]

    def _stride(self, protocol: str, length: int) -> int:
        return length if protocol == "nonoverlapping" else self.stride or max(1, length // 8)

    def trials(self, documents: Sequence, selection: Selection, start: int | None, limit: int | None):
        """Trials of every cell that the text can fill and whose length the model can be fed.

        documents: with `tokens` and `n_bytes`, both (n,); start: token in front of every window, or None.
        """
        trials = []
        for cell in self.cells():
            if cell.length not in selection.lengths or (limit is not None and cell.length > limit):
                continue
            if cell.protocol == "hf":
                trials += _stream_trials(cell, documents, selection, start)
                continue
            for block in selection.blocks:
                cut = windows.sliding(block.first, block.last, cell.length, cell.stride, start is not None)
                document = documents[block.document]
                trials += [
                    _trial(cell, window, document.tokens, document.n_bytes, start, block.document, block.number)
                    for window in cut
                ]
        return trials


def _trial(cell, window, tokens, n_bytes, start, document: int, block: int) -> Trial:
    clipped = windows.clipped(window, cell.stride, start is not None) if cell.protocol == "sliding" else 0
    place = Place(cell, document, block, int(n_bytes[window.first : window.end + 1].sum()), clipped)
    scored = np.arange(window.first - window.begin, window.end - window.begin + 1)
    return Trial(tokens[window.begin : window.end + 1], scored, start, place)


def _stream_trials(cell: Cell, documents: Sequence, selection: Selection, start: int | None) -> list[Trial]:
    """`hf` on the documents joined end to end, as many targets as the other protocols score."""
    tokens = np.concatenate([d.tokens for d in documents])
    n_bytes = np.concatenate([d.n_bytes for d in documents])
    if len(selection.blocks) < selection.n_available:
        tokens = tokens[: len(selection.blocks) * selection.size + 1]
    cut = windows.hf(len(tokens), cell.length, cell.stride)
    return [_trial(cell, w, tokens, n_bytes, start, 0, (w.first - 1) // selection.size) for w in cut]


def bucket(context: int) -> tuple[int, int]:
    """The stretch of contexts that `context` is reported in: 0, 1, 2, 3-4, 5-8, 9-16, ..."""
    if context < 2:
        return context, context
    top = 1 << (context - 1).bit_length()
    return top // 2 + 1, top


def reduce(trial: Trial, scores: Scores) -> list[list]:
    """Losses of a trial -> [context_from, n_scored, nll_sum] for each bucket: what the journal keeps."""
    nll = scores.nll.astype(np.float64)  # a window's nats in float32 would lose digits
    rows, at = [], 0
    while at < len(nll):
        low, high = bucket(int(trial.scored[at]))
        end = int(np.searchsorted(trial.scored, high, side="right"))
        rows.append([low, end - at, float(nll[at:end].sum())])
        at = end
    return rows


def n_blocks(trials: Sequence[Trial]) -> dict[Cell, int]:
    """How many blocks each cell has once everything is measured."""
    places = {(t.key.cell, t.key.document, t.key.block) for t in trials}
    return Counter(cell for cell, _, _ in places)


@dataclass(frozen=True)
class BlockSum:
    """Sums over one block under one cell."""

    cell: Cell
    document: int
    block: int
    status: str
    detail: str
    n_windows: int
    n_clipped: int
    n_scored: int
    n_bytes: int
    nll_sum: float | None
    """Nats; None unless every window of the block is ok."""
    buckets: dict[int, tuple[int, float]]
    """context_from -> n_scored, nll_sum."""
    seconds: float
    fed: float
    peak_memory_bytes: int


def block_sums(trials: Sequence[Trial], results: dict[int, dict[str, Any]]) -> list[BlockSum]:
    """Journal records by trial number -> sums a block, for every block whose trials are all there."""
    groups: dict[tuple, list[int]] = defaultdict(list)
    for number, trial in enumerate(trials):
        groups[trial.key.cell, trial.key.document, trial.key.block].append(number)
    sums = []
    for (cell, document, block), members in groups.items():
        if all(m in results for m in members):
            sums.append(_block_sum(cell, document, block, [trials[m] for m in members], [results[m] for m in members]))
    return sums


def _block_sum(cell: Cell, document: int, block: int, trials: list[Trial], results: list[dict]) -> BlockSum:
    failed = next((r for r in results if r["status"] != "ok"), None)
    buckets: dict[int, tuple[int, float]] = {}
    for result in results:
        for context, n, nll_sum in result["sums"] or ():
            had = buckets.get(context, (0, 0.0))
            buckets[context] = (had[0] + n, had[1] + nll_sum)
    return BlockSum(
        cell,
        document,
        block,
        failed["status"] if failed else "ok",
        failed["detail"] if failed else "",
        len(trials),
        sum(t.key.n_clipped for t in trials),
        sum(len(t.scored) for t in trials),
        sum(t.key.n_bytes for t in trials),
        None if failed else sum(nll_sum for _, nll_sum in buckets.values()),
        {} if failed else dict(sorted(buckets.items())),
        sum(r["seconds"] for r in results),
        sum(r["fed"] for r in results),
        max(r["peak_memory_bytes"] for r in results),
    )


def units(blocks: Sequence[BlockSum]) -> list[list[int]]:
    """Indices of blocks that are resampled together: single blocks, or documents where there are 20 or more."""
    documents: dict[int, list[int]] = defaultdict(list)
    for index, block in enumerate(blocks):
        documents[block.document].append(index)
    if len(documents) >= stats.FEW:
        return list(documents.values())
    return [[index] for index in range(len(blocks))]


def per_unit(groups: list[list[int]], values: Iterable[float]) -> np.ndarray:
    """Sums of `values` (one a block) over each unit."""
    values = np.asarray(list(values), np.float64)
    return np.array([values[group].sum() for group in groups])
