"""A change of loss and its parts, from attribution.csv: of one model, by one method, from one base length on.

total      = early_token + beyond_base       over all targets of the windows
window_end = length_effect + content_use     over the last targets of each window: other targets, another sum
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lengthbench.plots.series import Series
from lengthbench.plots.series import read as read_series

ALL = ("total", "early_token", "beyond_base")
END = ("window_end", "length_effect", "content_use")


@dataclass(frozen=True, eq=False)
class Part:
    """One component at each length, as columns (n,); NaN where the table has no number."""

    nats: np.ndarray
    """Positive: better at the longer length."""
    low: np.ndarray
    high: np.ndarray
    start: np.ndarray
    """Loss it starts from, and below the one it leads to, in nats per token."""
    end: np.ndarray


@dataclass(frozen=True, eq=False)
class Split:
    line: Series
    """Its rows, one for each length and component."""
    name: str
    """The model's, with the method, base length or stride where these make several of one model."""
    base: float
    """Base length W, in tokens."""

    @property
    def method(self) -> str:
        return self.line.protocol

    @property
    def lengths(self) -> np.ndarray:
        """(n,) ascending."""
        return np.unique(self.line.lengths)

    def part(self, component: str) -> Part:
        rows = {float(self.line.lengths[i]): i for i in np.flatnonzero(self.line.cells["component"] == component)}
        found = {name: self._at(rows, name) for name in ("nats", "nats_ci_low", "nats_ci_high", "nll_from", "nll_to")}
        return Part(*found.values())

    def bound(self) -> np.ndarray:
        """(n,) what the stride alone may have lent to `beyond_base`; 0 where the table does not say."""
        rows = np.flatnonzero(self.line.cells["component"] == "beyond_base")
        return np.nan_to_num(self._at({float(self.line.lengths[i]): i for i in rows}, "s_bound"))

    def at(self, length: float) -> Series:
        """The rows of one length over all targets."""
        return _rows(self.only(ALL), self.only(ALL).lengths == length)

    def only(self, components: Sequence[str]) -> Series:
        """The rows of some components."""
        return _rows(self.line, np.isin(self.line.cells["component"].astype(str), components))

    def failed(self, components: Sequence[str]) -> np.ndarray:
        """(n,) bool: lengths at which the model could not do one of them."""
        own = self.only(components)
        return np.array([own.failed[own.lengths == n].any() for n in self.lengths])

    def once(self) -> Series:
        """One row a length, the first that is not ok where there is one: for the words about what failed."""
        own = self.only(ALL)
        rows = [np.flatnonzero(own.lengths == n) for n in np.unique(own.lengths)]
        keep = [next((i for i in at if own.status[i] != "ok"), at[0]) for at in rows]
        return _rows(own, np.isin(np.arange(len(own.status)), keep))

    def _at(self, rows: Mapping[float, np.intp], name: str) -> np.ndarray:
        values = self.line.column(name)
        return np.array([values[rows[n]] if n in rows else np.nan for n in self.lengths])


def read(table: pd.DataFrame | None) -> list[Split]:
    """The splits of `table`, in the order the models of other figures have."""
    if table is None or not {"component", "base_length"} <= set(table.columns):
        return []
    methods = table["method"] if "method" in table.columns else ""
    return [split for line in _lines(table.assign(protocol=methods)) for split in _by_base(line)]


def _lines(table: pd.DataFrame) -> list[Series]:
    """A series for each model and method, named so that the methods of one model differ."""
    lines = read_series(table)
    several = {line.key for line in lines if sum(other.key == line.key for other in lines) > 1}
    return [replace(line, name=f"{line.name}, {line.protocol}") if line.key in several else line for line in lines]


def _by_base(line: Series) -> list[Split]:
    bases = line.numbers("base_length")
    found = []
    for base in np.unique(bases[np.isfinite(bases)]):
        own = _rows(line, bases == base)
        name = line.name if len(np.unique(bases[np.isfinite(bases)])) == 1 else f"{line.name}, from {base:.0f}"
        found += _by_stride(own, name, float(base))
    return found


def _by_stride(line: Series, name: str, base: float) -> list[Split]:
    """One split for each stride of the targets of all windows; those of the window's end may have their own."""
    strides = line.numbers("stride")
    at_end = np.isin(line.cells["component"].astype(str), END)
    main = np.unique(strides[~at_end & np.isfinite(strides)])
    if len(main) < 2:
        return [Split(_rows(line, ~at_end | (strides == _own(strides[at_end], main))), name, base)]
    splits = []
    for stride in main:
        keep = np.where(at_end, strides == _own(strides[at_end], [stride]), strides == stride)
        splits.append(Split(_rows(line, keep), f"{name}, stride {stride:.0f}", base))
    return splits


def _own(strides: np.ndarray, wanted: Sequence[float] | np.ndarray) -> float:
    """The stride to take at the window's end: the wanted one where it was measured, else the finest."""
    known = strides[np.isfinite(strides)]
    same = [float(n) for n in wanted if n in known]
    return same[0] if same else float(known.min()) if len(known) else np.nan


def _rows(line: Series, keep: np.ndarray) -> Series:
    return replace(line, cells={name: column[keep] for name, column in line.cells.items()})
