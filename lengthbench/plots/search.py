"""What one model found of one task's evidence, by position and length; from needle.csv.

A search is a grid: rows are positions from the start of the input to its end, columns are lengths.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lengthbench.plots.series import Series
from lengthbench.plots.series import read as read_series

NAMED = {"start": 0.0, "middle": 0.5, "end": 1.0}
"""Depth of each named position."""
PARTS = ("task", "task_version", "mode")


@dataclass(frozen=True, eq=False)
class Search:
    line: Series
    """Its rows, one for each position and length."""
    name: str
    """The model's, with the task, its version and the mode where the table has several."""
    task: str
    mode: str
    positions: tuple[str, ...]
    """P of them, by depth."""

    @property
    def lengths(self) -> np.ndarray:
        """(L,) ascending."""
        return np.unique(self.line.lengths)

    def numbers(self, column: str) -> np.ndarray:
        """(P, L) float64; NaN where the table has no number."""
        return self._spread(self.line.column(column), np.nan)

    @property
    def status(self) -> np.ndarray:
        """(P, L) words; empty where the table has no row."""
        return self._spread(self.line.status, "")

    @property
    def beats(self) -> np.ndarray:
        """(P, L) 1 where the evidence is found surely more often than guessing does, else 0; NaN where not known.

        Where the table does not say, the rate's interval is held against the rate without evidence.
        """
        said = np.array([_truth(v) for v in self.line.cells.get("above_absent", [None] * len(self.line.status))])
        low, absent = self.line.column("ci_low"), self.line.column("absent_exact_rate")
        held = np.where(np.isfinite(low) & np.isfinite(absent), (low > absent) * 1.0, np.nan)
        known = np.isfinite(self.line.column("exact_rate"))
        return self._spread(np.where(known, np.where(np.isfinite(said), said, held), np.nan), np.nan)

    @property
    def gains(self) -> np.ndarray:
        """(P, L) 1 where the evidence surely lowers the loss of the answer, -1 where it raises it, else 0."""
        low, high = self.numbers("gain_ci_low"), self.numbers("gain_ci_high")
        known = np.isfinite(low) & np.isfinite(high)
        return np.where(known, (low > 0) * 1.0 - (high < 0) * 1.0, np.nan)

    def once(self) -> Series:
        """One row a length, the first that failed where one did: for the words about what failed."""
        rows = [np.flatnonzero(self.line.lengths == n) for n in self.lengths]
        keep = [next((i for i in at if self.line.failed[i]), at[0]) for at in rows]
        chosen = np.isin(np.arange(len(self.line.status)), keep)
        return replace(self.line, cells={name: column[chosen] for name, column in self.line.cells.items()})

    def _spread(self, values: np.ndarray, missing: object) -> np.ndarray:
        """(n,) -> (P, L)."""
        found = np.full((len(self.positions), len(self.lengths)), missing, np.asarray(values).dtype)
        rows = [self.positions.index(str(name)) for name in self.line.cells["position"]]
        found[rows, np.searchsorted(self.lengths, self.line.lengths)] = values
        return found


def read(table: pd.DataFrame | None) -> list[Search]:
    """The searches of `table`, in the order the models of other figures have."""
    if table is None or not len(table) or not {"model", "length", "position"} <= set(table.columns):
        return []
    empty = pd.Series([""] * len(table), index=table.index)
    parts = [table[name].map(_word) if name in table.columns else empty for name in PARTS]
    joined = ["\n".join(words) for words in zip(*parts, strict=True)]
    lines = read_series(table.assign(protocol=joined, position=table["position"].map(_word)))
    keys = [tuple(line.protocol.split("\n")) for line in lines]
    return [_search(line, own, keys) for line, own in zip(lines, keys, strict=True)]


def _search(line: Series, own: tuple[str, ...], keys: Sequence[tuple[str, ...]]) -> Search:
    task, version, mode = own
    versions = {key[1] for key in keys if key[0] == task}
    words = [task] if len({key[0] for key in keys}) > 1 else []
    words += [f"version {version}"] if len(versions) > 1 else []
    words += [mode] if len({key[2] for key in keys}) > 1 else []
    positions = dict.fromkeys(line.words("position"))
    depths = line.numbers("depth")
    places = {name: _depth(name, depths[line.cells["position"] == name]) for name in positions}
    return Search(
        line,
        " · ".join([line.name, *filter(None, words)]),
        task,
        mode,
        tuple(sorted(positions, key=places.__getitem__)),
    )


def _depth(name: str, achieved: np.ndarray) -> float:
    """The depth that the name stands for, else the one the rows achieved."""
    if name in NAMED:
        return NAMED[name]
    try:
        return float(name.removesuffix("%")) / (100 if name.endswith("%") else 1)
    except ValueError:
        known = achieved[np.isfinite(achieved)]
        return float(known.mean()) if len(known) else np.inf


def _word(value: object) -> str:
    if value is None or value is pd.NA or (isinstance(value, float) and np.isnan(value)):
        return ""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _truth(value: object) -> float:
    words = _word(value).lower()
    return {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}.get(words, np.nan)
