"""How far a model finds the evidence, in a few plain words, from the cells that surely beat guessing.

retrieves within 256, nothing beyond       every position of the lengths up to 256, none of the longer ones
finds it at the end only                   one position, whatever the length
no better than guessing                    no cell
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lengthbench.plots import notes, style
from lengthbench.plots.search import Search

RELIABLE = 0.9
"""Below this rate where it does find it, the words say how often."""


@dataclass(frozen=True)
class Words:
    does: str
    finds: str
    never: str


EXACT = Words("retrieves", "finds it", "no better than guessing")
GAIN = Words("evidence helps", "evidence helps", "evidence has no measurable effect")


def label(search: Search, why: bool = True) -> str:
    """What it retrieves, and `why` it goes no further."""
    rates = search.numbers("exact_rate")
    if not np.isfinite(rates).any():
        return "; ".join(reasons(search)) or "no value"
    beats = search.beats
    if np.isnan(beats).all():
        told = f"{span(rates)} right, but no control says what guessing gives"
        return "; ".join([told, *(reasons(search) if why else [])])
    found = rates[beats == 1]
    told = _reach(beats, search, EXACT)
    often = f"; {span(found)} right" if len(found) and found.min() < RELIABLE else ""
    return "; ".join([told + often, *(reasons(search) if why else [])])


def gain(search: Search, why: bool = True) -> str:
    """Where the evidence lowers the loss of the answer, and `why` it goes no further."""
    signs, stops = search.gains, reasons(search) if why else []
    if np.isnan(signs).all():
        known = np.isfinite(search.numbers("evidence_gain")).any()
        return "; ".join([*(["no interval"] if known else []), *stops]) or "no value"
    harmed = int((signs == -1).sum())
    harm = [f"hurts in {harmed} of {int(np.isfinite(signs).sum())} cells"] if harmed else []
    if harmed and not (signs == 1).any():
        return "; ".join([*harm, "helps in none", *stops])
    told = _reach(np.where(signs == -1, 0.0, signs), search, GAIN)
    return "; ".join([told, *harm, *stops])


def reasons(search: Search) -> list[str]:
    """Why cells have no numbers."""
    once = search.once()
    short = [f"{n:.0f}" for n in once.lengths[once.status == "too_short"]]
    return [*notes.stops(once), *([f"text too short for {', '.join(short)}"] if short else [])]


def span(rates: np.ndarray) -> str:
    """35 %, or 35 to 60 %: the range of the rates."""
    known = rates[np.isfinite(rates)]
    low, high = percent(float(known.min())), percent(float(known.max()))
    return f"{low} %" if low == high else f"{low} to {high} %"


def percent(rate: float) -> str:
    """A rate in percent; 0 and 100 are said of nothing else."""
    words = f"{100 * rate:.0f}"
    if words == "0" and rate > 0:
        return "<1"
    return ">99" if words == "100" and rate < 1 else words


def beyond(search: Search, grid: np.ndarray) -> bool | None:
    """Whether any cell (P, L) beyond the training length is 1; None where nothing is known there.

    A model that has no positions there does not find anything.
    """
    trained = search.line.train_length
    if not trained:
        return None
    further = search.lengths > trained
    known = np.isfinite(grid[:, further]).any() or (search.status[:, further] == "unsupported").any()
    return bool((grid[:, further] == 1).any()) if known else None


def _reach(found: np.ndarray, search: Search, words: Words) -> str:
    """The cells (P, L) that are 1, told by lengths and positions; NaN is not known."""
    columns = np.flatnonzero(np.isfinite(found).any(0))
    lengths = [f"{search.lengths[i]:.0f}" for i in columns]
    sets = [frozenset(np.flatnonzero(found[:, i] == 1).tolist()) for i in columns]
    full = [bool((found[np.isfinite(found[:, i]), i] == 1).all()) for i in columns]
    if not any(sets):
        return words.never
    if all(full):
        where = "everywhere" if np.isfinite(found[:, columns]).all() else "wherever measured"
        return f"{words.does} {where}" + (f", up to {lengths[-1]}" if len(lengths) > 1 else "")
    first = full.index(False)
    later, last = sets[first:], max(i for i, own in enumerate(sets) if own)
    if first and not any(later):
        return f"{words.does} within {lengths[first - 1]}, nothing beyond"
    alike = {own for own in later if own}
    where = places(min(alike, key=sorted), search.positions) if len(alike) == 1 else _side(alike, len(found))
    end = f", up to {lengths[last]}" if last < len(lengths) - 1 else ""
    unbroken = all(later[: last - first + 1])
    if first and where and unbroken:
        return f"{words.does} within {lengths[first - 1]}, beyond {where}{end}"
    if not first and where and unbroken:
        return f"{words.finds} {where}{end}"
    n, total = int((found == 1).sum()), int(np.isfinite(found).sum())
    none = f", none beyond {lengths[last]}" if last < len(lengths) - 1 else ""
    return f"{words.does} in {n} of {total} cells{none}"


def places(rows: frozenset[int], positions: Sequence[str]) -> str | None:
    """`at the end only`, `from 70% on`; None where the positions have no simple name or are all of them."""
    n, own = len(positions), sorted(rows)
    if not own or len(own) == n:
        return None
    if len(own) == 1:
        name = positions[own[0]]
        return f"{'at' if name.endswith('%') else 'in the' if name == 'middle' else 'at the'} {name} only"
    if own == list(range(n - len(own), n)):
        return f"from {_the(positions[own[0]])} on only"
    if own == list(range(len(own))):
        return f"up to {_the(positions[own[-1]])} only"
    lost = sorted(set(range(n)) - rows)
    return "not in the middle" if lost == list(range(lost[0], lost[-1] + 1)) else None


def _side(sets: Iterable[frozenset[int]], n: int) -> str | None:
    """For sets of positions that differ: whether all reach from somewhere to the end, or from the start."""
    if all(own == set(range(n - len(own), n)) for own in sets):
        return "only towards the end"
    return "only towards the start" if all(own == set(range(len(own))) for own in sets) else None


def _the(position: str) -> str:
    return position if position.endswith("%") else f"the {position}"


def title(searches: Sequence[Search], grids: Sequence[np.ndarray], does: str, alone: str, many: str) -> str:
    """How many models find it beyond their training; of a single search what it finds, else just what is shown."""
    if len(searches) == 1:
        return f"{style.shorten(searches[0].name, 24)}: {alone}"
    keys = dict.fromkeys(search.line.key for search in searches)
    if len(keys) == 1:
        return f"{style.shorten(searches[0].line.name, 24)}: {many[0].lower()}{many[1:]}"
    told = {key: [beyond(s, g) for s, g in zip(searches, grids, strict=True) if s.line.key == key] for key in keys}
    known = [any(own) for own in told.values() if any(value is not None for value in own)]
    trained = sorted({search.line.train_length or 0.0 for search in searches})
    if len(known) < 2:
        return many
    whose = f"the {trained[0]:.0f} tokens of training" if len(trained) == 1 else "their training length"
    n = "None" if not any(known) else "All" if all(known) else str(sum(known))
    return f"{n} of {len(known)} models {does} beyond {whose}"
