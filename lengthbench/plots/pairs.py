"""Perplexity and retrieval of one model on one task, matched by length, and what the two say together.

flat     perplexity at most FLAT times that at the training length, at the lengths where both were measured
gone     beyond the training length nothing is found more often than by guessing
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lengthbench.plots import notes, reach, search, series, style
from lengthbench.plots.search import Search
from lengthbench.plots.series import Key, Series

FLAT, BREAKS = 1.1, 2.0
"""Times the perplexity at the training length."""


@dataclass(frozen=True)
class Rate:
    """How often the fact is found at one length."""

    mean: float
    """Over positions, each by its number of trials."""
    low: float
    high: float
    """Of the worst position and of the best."""
    found: float
    """Share of positions found surely more often than by guessing; NaN where no control says."""


@dataclass(frozen=True, eq=False)
class Pair:
    name: str
    """The model's, with the task where the table has several."""
    ppl: Series | None
    search: Search

    @property
    def trained(self) -> float | None:
        own = self.search.line.train_length
        return own or (self.ppl.train_length if self.ppl else None)

    @property
    def reference(self) -> float | None:
        """The length whose perplexity is 1: the longest within training, else the shortest measured."""
        known = [n for n, value in self._perplexities().items() if math.isfinite(value)]
        within = [n for n in known if self.trained and n <= self.trained]
        return max(within) if within else min(known, default=None)

    @property
    def ratios(self) -> dict[float, float]:
        """Perplexity at each length as a multiple of that at the reference."""
        known, base = self._perplexities(), self.reference
        return {n: value / known[base] for n, value in known.items()} if base else {}

    @property
    def rates(self) -> dict[float, Rate]:
        return _rates(self.search)

    @property
    def lengths(self) -> list[float]:
        return sorted({float(n) for n in [*self.search.lengths, *(self.ppl.lengths if self.ppl else [])]})

    @property
    def drawable(self) -> bool:
        return bool(self.ratios and self.rates)

    @property
    def beyond(self) -> list[float]:
        """Lengths beyond the reference at which both were measured, ascending."""
        return [n for n in self.ratios if n in self.rates and self.reference and n > self.reference]

    @property
    def gone(self) -> bool:
        """Whether perplexity stays flat where retrieval, which was there before, ends."""
        return bool(self.beyond) and self._perplexity() == "flat" and self._retrieval().startswith("retrieval gone")

    @property
    def lost(self) -> bool:
        """Whether perplexity stays flat while fewer positions are retrieved from than within training."""
        if not self.beyond or self._perplexity() != "flat":
            return False
        before = [rate.found for n, rate in self.rates.items() if n <= (self.reference or 0)]
        return self.rates[self.beyond[-1]].found < max(before, default=0.0)

    def finding(self) -> str:
        """Perplexity and retrieval beyond the training length, in a few words."""
        if not self.drawable:
            return ""
        if not self.beyond:
            return "; ".join(self.reasons()) or f"no length beyond {self.reference:.0f} has both"
        return f"perplexity {self._perplexity()}, {self._retrieval()}"

    def numbers(self) -> str:
        """Both at the longest length that has both."""
        if not self.beyond:
            return ""
        last = self.beyond[-1]
        ratio = f"{style.number(self.ratios[last])}×" if math.isfinite(self.ratios[last]) else "infinite"
        told = f"at {last:.0f}: {ratio}, {reach.percent(self.rates[last].mean)} % found"
        return "; ".join([told, *self.reasons()])

    def reasons(self) -> list[str]:
        """Why lengths have no numbers."""
        stops = reach.reasons(self.search)
        missing = [] if self.ppl else ["no perplexity of it"]
        return list(dict.fromkeys([*(notes.stops(self.ppl) if self.ppl else missing), *stops]))

    def _perplexities(self) -> dict[float, float]:
        values = self.ppl.column("ppl") if self.ppl else np.array([])
        lengths = self.ppl.lengths if self.ppl else []
        return {float(n): float(v) for n, v in zip(lengths, values, strict=True) if v > 0}

    def _perplexity(self) -> str:
        worst = max(self.ratios[n] for n in self.beyond)
        return "flat" if worst <= FLAT else "breaks" if worst >= BREAKS else "rises"

    def _retrieval(self) -> str:
        found = [self.rates[n].found for n in self.beyond]
        before = [rate.found for n, rate in self.rates.items() if n <= (self.reference or 0)]
        if any(math.isnan(share) for share in found):
            return "retrieval without a control"
        if not any(found):
            return "retrieval gone" if any(share > 0 for share in before) else "retrieves nothing"
        last = max(n for n, share in zip(self.beyond, found, strict=True) if share)
        if last < self.beyond[-1]:
            return f"retrieval gone beyond {last:.0f}"
        return "retrieval holds" if min(found) == 1 else f"retrieval {self._where(last)}"

    def _where(self, length: float) -> str:
        """The positions still retrieved from at a length."""
        column = self.search.beats[:, self.search.lengths == length][:, 0]
        return reach.places(frozenset(np.flatnonzero(column == 1).tolist()), self.search.positions) or "in part"


def _rates(own: Search) -> dict[float, Rate]:
    values, weights, beats = own.numbers("exact_rate"), own.numbers("n_trials"), own.beats
    found = {}
    for i, length in enumerate(own.lengths):
        known = np.isfinite(values[:, i])
        if known.any():
            rate, weight, control = values[known, i], weights[known, i], beats[known, i]
            mean = np.average(rate, weights=weight) if np.isfinite(weight).all() and weight.sum() else rate.mean()
            share = float((control == 1).mean()) if np.isfinite(control).all() else math.nan
            found[float(length)] = Rate(float(mean), float(rate.min()), float(rate.max()), share)
    return found


def read(sweep: pd.DataFrame | None, needle: pd.DataFrame | None) -> list[Pair]:
    """A pair for every model and task of `needle`, with the first protocol of the model in `sweep`."""
    first = {line.key: line for line in reversed(series.read(sweep))}
    return [Pair(own.name, _match(own.line.key, first), own) for own in search.read(needle)]


def _match(key: Key, first: dict[Key, Series]) -> Series | None:
    """The sweep of the same model and scheme; where parameters are written differently, the only one there is."""
    if key in first:
        return first[key]
    alike: Sequence[Series] = [line for own, line in first.items() if own[:2] == key[:2]]
    return alike[0] if len(alike) == 1 else None
