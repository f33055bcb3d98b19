"""Which blocks of which documents a run scores: the same targets for every length and every protocol.

    block size B (lengths.block); document of n tokens: blocks 1..K of B targets, K = floor((n-1) / B)

`--max-tokens` cuts the number of blocks, never a block: round-robin over the documents, evenly spaced in each.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lengthbench import lengths


@dataclass(frozen=True)
class Block:
    document: int
    number: int
    """Place among the document's blocks, from 0."""
    first: int
    """First target, as numbered in the document."""
    last: int
    """Last target, inclusive."""


@dataclass(frozen=True)
class Selection:
    blocks: tuple[Block, ...]
    size: int
    """Targets a block; 0 if no length can be filled."""
    lengths: tuple[int, ...]
    """Those that some document can fill."""
    too_short: tuple[int, ...]
    """Those that none can."""
    n_left_out: int
    """Documents without a single block."""
    n_dropped: int
    """Targets that belong to no block: the rests of documents, and documents left out."""
    n_available: int
    """Blocks there would be without `max_tokens`."""


def select(sizes: Sequence[int], wanted: tuple[int, ...], max_tokens: int | None) -> Selection:
    """Blocks for documents of `sizes` tokens and the lengths `wanted`."""
    longest = max(sizes, default=0) - 1
    fitting = tuple(n for n in wanted if n <= longest)
    while fitting and lengths.block(fitting) > longest:
        fitting = fitting[:-1]
    too_short = tuple(n for n in wanted if n not in fitting)
    if not fitting:
        return Selection((), 0, (), too_short, len(sizes), sum(max(0, n - 1) for n in sizes), 0)
    size = lengths.block(fitting)
    available = [max(0, n - 1) // size for n in sizes]
    chosen = _share(available, None if max_tokens is None else max(1, max_tokens // size))
    blocks = [
        Block(document, number, number * size + 1, (number + 1) * size)
        for document, (n, k) in enumerate(zip(chosen, available, strict=True))
        for number in _spread(n, k)
    ]
    dropped = sum(max(0, n - 1) - k * size for n, k in zip(sizes, available, strict=True))
    return Selection(tuple(blocks), size, fitting, too_short, sum(k == 0 for k in available), dropped, sum(available))


def _share(available: list[int], most: int | None) -> list[int]:
    """How many blocks of each document: one each in turn until there are `most`."""
    if most is None or most >= sum(available):
        return available
    chosen = [0] * len(available)
    while most:
        for document, k in enumerate(available):
            if most and chosen[document] < k:
                chosen[document] += 1
                most -= 1
    return chosen


def _spread(n: int, k: int) -> list[int]:
    """n of 0 .. k-1, the middles of n equal stretches."""
    return [(2 * i + 1) * k // (2 * n) for i in range(n)]
