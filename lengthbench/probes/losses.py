"""Losses of trials -> sums over blocks: what every probe of running text shares.

A cell is one row of a summary, a place says which cell and block a trial belongs to. The journal keeps of a trial
its sums by context bucket (1, 2, 3-4, 5-8, ...); blocks of sums are what means and intervals are computed from.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lengthbench import stats
from lengthbench.trials import Scores, Trial
from lengthbench.windows import Window


@dataclass(frozen=True)
class Cell:
    """One set of windows over the targets of a run: a row of ppl.csv for one model."""

    protocol: str
    """nonoverlapping | sliding | hf | cut | window_end | ladder"""
    length: int
    """Tokens of the window whose targets these are."""
    stride: int
    """Targets a window."""
    condition: str = "full"
    """What a window may see: base, cut, full, swap."""


@dataclass(frozen=True)
class Place:
    """Which cell and block a trial belongs to, and what its targets are."""

    cell: Cell
    document: int
    block: int
    n_bytes: int
    """UTF-8 bytes of the scored tokens' text."""
    n_clipped: int
    first: int
    """First target, as numbered in the document."""
    source: str = ""
    """Where a swapped context comes from."""


def trial(cell: Cell, window: Window, document: Any, start: int | None, number: int, block: int, clipped: int = 0):
    """The trial of `window` in `document` (with `tokens` and `n_bytes`, (n,) each), its number in the corpus."""
    n_bytes = int(document.n_bytes[window.first : window.end + 1].sum())
    scored = np.arange(window.first - window.begin, window.end - window.begin + 1)
    place = Place(cell, number, block, n_bytes, clipped, window.first)
    return Trial(document.tokens[window.begin : window.end + 1], scored, start, place)


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
    sources = "; ".join(dict.fromkeys(t.key.source for t in trials if t.key.source))
    return BlockSum(
        cell,
        document,
        block,
        failed["status"] if failed else "ok",
        failed["detail"] if failed else sources,
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


def of_cell(sums: Iterable[BlockSum], cell: Cell) -> list[BlockSum]:
    """The cell's blocks in the order of the text."""
    return sorted((b for b in sums if b.cell == cell), key=lambda b: (b.document, b.block))


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
