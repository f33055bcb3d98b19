"""The sentence under a perplexity table: what happened from the training length to the longest, by intervals.

A model "rises" or "falls" only if the paired 95 % interval of the change excludes 0, and "breaks" if it lies above
ln 2, that is, if perplexity at least doubles. A fall is never called use of context: longer windows also hold
fewer targets near their start.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lengthbench import stats
from lengthbench.probes.losses import BlockSum, Cell, per_unit, units

KINDS = {
    "breaks": "breaks for",
    "rises": "rises for",
    "flat": "does not change measurably for",
    "falls": "falls for",
    "unknown": "moves, without an interval, for",
}
DILUTION = "A fall alone is no use of far context: longer windows hold fewer targets near their start."


@dataclass(frozen=True)
class Change:
    """What one model did between two lengths."""

    name: str
    kind: str
    """A key of KINDS."""
    before: int
    after: int
    """Lengths compared, in tokens; equal if there was only one."""
    ppl_before: float
    ppl_after: float
    limit: int | None
    """Longest window the model can be fed, if some length asked for was longer."""

    def __str__(self) -> str:
        ratio = self.ppl_after / self.ppl_before
        if not math.isfinite(ratio):
            much = ""
        elif ratio >= 2:
            much = f", x {ratio:.3g}"
        else:
            much = f", {100 * (ratio - 1):+.1f} %"
        return f"{self.name} ({self.ppl_before:.4g} -> {self.ppl_after:.4g}{much})"


def change(
    name: str,
    train_length: int | None,
    limit: int | None,
    cells: Sequence[Cell],
    sums: Sequence[BlockSum],
    seed: int,
) -> Change | None:
    """The change from the training length (or the shortest) to the longest length that has numbers."""
    whole = [c for c in cells if c.protocol == cells[0].protocol and _ok(c, sums)]
    if not whole:
        return None
    known = [c for c in whole if train_length is not None and c.length >= train_length]
    before, after = (known or whole)[0], whole[-1]
    sides = [_blocks(cell, sums) for cell in (before, after)]
    nats = [[b.nll_sum or 0.0 for b in side] for side in sides]
    targets = [[b.n_scored for b in side] for side in sides]
    ppl = [stats.ppl(stats.ratio(n, t)) for n, t in zip(nats, targets, strict=True)]
    beyond = limit if limit is not None and any(c.length > limit for c in cells) else None
    kind = "unknown"
    if targets[0] == targets[1]:  # `hf` has other targets at every length: nothing to pair
        groups = units(sides[0])
        difference = per_unit(groups, np.subtract(nats[1], nats[0]))
        kind = _kind(stats.interval(difference, per_unit(groups, targets[0]), str(seed)))
    return Change(name, kind, before.length, after.length, ppl[0], ppl[1], beyond)


def _kind(found: stats.Interval) -> str:
    if found.low is None or found.high is None:
        return "unknown"
    if found.low > math.log(2):
        return "breaks"
    return "rises" if found.low > 0 else "falls" if found.high < 0 else "flat"


def sentence(changes: Sequence[Change]) -> str:
    """One sentence over all models; a second one if something fell. A name keeps its letters, first word or not."""
    moved = [c for c in changes if c.after > c.before]
    parts = []
    for ends in dict.fromkeys((c.before, c.after) for c in moved):
        said = []
        for kind, words in KINDS.items():
            those = [str(c) for c in moved if (c.before, c.after) == ends and c.kind == kind]
            if those:
                said.append(f"{words} {_list(those)}")
        word = "from" if parts else "From"
        parts.append(f"{word} {ends[0]} to {ends[1]} tokens perplexity {'; '.join(said)}")
    for c in changes:
        if c.limit is not None:
            parts.append(f"{c.name} has no positions beyond {c.limit}")
        elif c.after == c.before:
            parts.append(f"{c.name} has perplexity {c.ppl_after:.4g} at {c.after} tokens")
    text = f"{'; '.join(parts)}." if parts else ""
    return f"{text} {DILUTION}" if any(c.kind == "falls" for c in moved) else text


def _ok(cell: Cell, sums: Sequence[BlockSum]) -> bool:
    blocks = _blocks(cell, sums)
    return bool(blocks) and all(b.nll_sum is not None for b in blocks)


def _blocks(cell: Cell, sums: Sequence[BlockSum]) -> list[BlockSum]:
    return sorted((b for b in sums if b.cell == cell), key=lambda b: (b.document, b.block))


def _list(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
