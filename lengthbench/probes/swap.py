"""The far context replaced by a stretch of another document: the same number of tokens, nothing they say.

    full   x0 x1 x2 x3 x4 x5 x6 . x7 x8        keep = 4 tokens before the last target
    swap   y7 y8 y9 x3 x4 x5 x6 . x7 x8        y: another document of the same corpus

Without another document that is long enough, a stretch at least `apart` tokens away in the same one. The choice
is seeded by the block and the window, so it does not depend on what else is measured.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lengthbench import stats
from lengthbench.trials import Trial


def swapped(trial: Trial, keep: int, documents: Sequence, apart: int, key: str) -> Trial | None:
    """`trial` with all but the last `keep` fed tokens replaced; None if no text can replace them.

    documents: with `name` and `tokens` (n,); the trial's own is `trial.key.document`.
    """
    size = len(trial.tokens) - 1 - keep
    assert size > 0, "there must be a far context to replace"
    own = trial.key.document
    begin = trial.key.first - int(trial.scored[0])
    rng = stats.generator(f"swap {key} {own} {trial.key.first} {len(trial.tokens)}")
    found = _elsewhere(documents, own, size, rng) or _far_away(documents[own], own, begin, size, apart, rng)
    if found is None:
        return None
    document, at = found
    foreign = documents[document].tokens[at : at + size]
    place = replace(trial.key, source=f"{documents[document].name}@{at}")
    return Trial(np.concatenate([foreign, trial.tokens[size:]]), trial.scored, trial.start, place)


def _elsewhere(documents: Sequence, own: int, size: int, rng: np.random.Generator) -> tuple[int, int] | None:
    """Document and first token of a stretch, each place in the other documents being equally likely."""
    room = np.array([0 if i == own else max(0, len(d.tokens) - size + 1) for i, d in enumerate(documents)])
    if not room.sum():
        return None
    place = int(rng.integers(room.sum()))
    document = int(np.searchsorted(np.cumsum(room), place, side="right"))
    return document, place - int(room[:document].sum())


def _far_away(document, own: int, begin: int, size: int, apart: int, rng) -> tuple[int, int] | None:
    """A stretch of the same document that ends `apart` before the window, or begins `apart` behind its start."""
    before = max(0, begin - apart - size + 1)
    first_after = begin + apart
    after = max(0, len(document.tokens) - size - first_after + 1)
    if before + after == 0:
        return None
    place = int(rng.integers(before + after))
    return own, place if place < before else first_after + place - before
