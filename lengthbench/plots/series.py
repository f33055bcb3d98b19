"""Lines to draw, from a table: one for each model (and scheme) under each protocol, with its name and its ink.

`reference:alibi` is called ALiBi. Other models go by the last part of their path, by more of it where two agree,
and with the scheme or its parameters in brackets where those make several of one model.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from lengthbench.plots import style
from lengthbench.plots.style import Ink

NICE = {
    "none": "NoPE",
    "learned": "learned",
    "sinusoidal": "sinusoidal",
    "rope": "RoPE",
    "t5": "T5 bias",
    "alibi": "ALiBi",
    "smollm2": "SmolLM2",
}
LARGEST = 1e100
"""Numbers above it are drawn like infinite ones: ticks around them would leave the range of floats."""
PROTOCOLS = tuple(style.DASHES)


class Key(NamedTuple):
    model: str
    scheme: str
    params: str
    """JSON, or empty."""


@dataclass(frozen=True, eq=False)
class Series:
    key: Key
    name: str
    """As a reader should call it."""
    ink: Ink
    protocol: str
    train_length: float | None
    """Tokens; None where nothing says."""
    cells: dict[str, np.ndarray]
    """Its rows of the table by ascending length, as columns (n,) of whatever stands in the cells."""

    def numbers(self, name: str) -> np.ndarray:
        """(n,) float64; NaN where the cell is empty or no number, or there is no such column."""
        return _numbers(self.cells[name]) if name in self.cells else np.full(len(self.status), np.nan)

    def column(self, name: str) -> np.ndarray:
        """(n,) float64 of the rows with status ok, NaN in the others; infinite beyond what an axis can show."""
        values = np.where(self.status == "ok", self.numbers(name), np.nan)
        return np.where(values > LARGEST, np.inf, values)

    def words(self, name: str) -> list[str]:
        """The different entries of a column of text."""
        return list(dict.fromkeys(str(v) for v in self.cells.get(name, ()) if not _missing(v)))

    @property
    def lengths(self) -> np.ndarray:
        return self.numbers("length")

    @property
    def status(self) -> np.ndarray:
        return self.cells["status"]

    @property
    def failed(self) -> np.ndarray:
        """(n,) bool: the model could not do it; too little text is not its fault."""
        return ~np.isin(self.status.astype(str), ("ok", "too_short"))


def read(table: pd.DataFrame | None) -> list[Series]:
    """The lines of `table`, in the order reference models are reported in, then as they stand."""
    if table is None or not len(table) or not {"model", "length"} <= set(table.columns):
        return []
    cells = {str(name): table[name].to_numpy(object) for name in table.columns}
    for name, missing in {"model": "", "scheme": "", "scheme_params": "", "protocol": "", "status": "ok"}.items():
        own = cells.get(name, np.full(len(table), None, object))
        cells[name] = np.array([missing if _missing(v) else str(v) for v in own], object)
    lengths = _numbers(cells["length"])
    places: dict[tuple[Key, str], list[int]] = {}
    for i in np.flatnonzero(lengths > 0):
        key = Key(cells["model"][i], cells["scheme"][i], cells["scheme_params"][i])
        places.setdefault((key, cells["protocol"][i]), []).append(int(i))
    keys = sorted(dict.fromkeys(key for key, _ in places), key=_rank)
    labels, colors = names(keys), inks(keys)
    found = []
    for key, protocol in sorted(places, key=lambda at: (keys.index(at[0]), _order(at[1], PROTOCOLS))):
        rows = sorted(places[key, protocol], key=lambda i: lengths[i])
        own = {name: column[rows] for name, column in cells.items()}
        trained = _numbers(own["train_length"]) if "train_length" in own else np.array([])
        trained = trained[trained > 0]
        first = float(trained[0]) if len(trained) else None
        found.append(Series(key, labels[key], colors[key], protocol, first, own))
    return found


def _rank(key: Key) -> int:
    """Reference models first, in their order."""
    return _order(key.scheme, tuple(style.SCHEMES)) if _reference(key) else len(style.SCHEMES)


def _order(name: str, known: tuple[str, ...]) -> int:
    return known.index(name) if name in known else len(known)


def names(keys: Sequence[Key]) -> dict[Key, str]:
    """A short name for each key, all different."""
    found = {key: style.shorten(_short(key, keys) + _brackets(key, keys)) for key in keys}
    taken = list(found.values())
    found = {key: name if taken.count(name) == 1 else _full(key) for key, name in found.items()}
    taken = list(found.values())
    return {key: name if name not in taken[:i] else f"{name} #{i + 1}" for i, (key, name) in enumerate(found.items())}


def inks(keys: Sequence[Key]) -> dict[Key, Ink]:
    """The scheme's own colour for one model of each scheme, a reference model before others; the rest cycle."""
    found: dict[Key, Ink] = {}
    for scheme, ink in style.SCHEMES.items():
        candidates = sorted((k for k in keys if k.scheme == scheme), key=lambda k: not _reference(k))
        if candidates:
            found[candidates[0]] = ink
    used = {ink.color for ink in found.values()}
    spare = [ink for ink in style.OTHERS if ink.color not in used] or list(style.OTHERS)
    rest = [key for key in keys if key not in found]
    return {**found, **{key: spare[i % len(spare)] for i, key in enumerate(rest)}}


def _reference(key: Key) -> bool:
    return key.model.startswith("reference:")


def _parts(model: str) -> list[str]:
    return [p for p in model.replace("\\", "/").removesuffix(".gguf").split("/") if p] or [model]


def _short(key: Key, keys: Sequence[Key]) -> str:
    if _reference(key):
        own = key.model.partition(":")[2]
        return NICE.get(own, own)
    mine, others = _parts(key.model), [_parts(k.model) for k in keys if k.model != key.model]
    depth = next((n for n in range(1, len(mine)) if all(o[-n:] != mine[-n:] for o in others)), len(mine))
    name = "/".join(mine[-depth:])
    return NICE.get(name, name)


def _brackets(key: Key, keys: Sequence[Key]) -> str:
    """` [scheme parameter=value]`, as far as needed to tell it from other keys of the same model."""
    same = [k for k in keys if k.model == key.model]
    replaced = _reference(key) and key.model.partition(":")[2] != key.scheme
    words = [NICE.get(key.scheme, key.scheme)] if replaced or len({k.scheme for k in same}) > 1 else []
    twins = [_params(k) for k in same if k.scheme == key.scheme]
    own = _params(key)
    words += [f"{name}={own[name]}" for name in sorted(own) if len({str(t.get(name)) for t in twins}) > 1]
    return f" [{' '.join(words)}]" if words else ""


def _params(key: Key) -> dict:
    try:
        found = json.loads(key.params) if key.params else {}
    except json.JSONDecodeError:
        found = key.params
    return found if isinstance(found, dict) else {"parameters": found}


def _full(key: Key) -> str:
    return style.shorten(f"{key.model} [{' '.join(filter(None, key[1:]))}]", 44)


def _missing(value: object) -> bool:
    return value is None or value is pd.NA or value == "" or (isinstance(value, float) and math.isnan(value))


def _numbers(values: np.ndarray) -> np.ndarray:
    return np.array([_number(v) for v in values], np.float64)


def _number(value: object) -> float:
    try:
        return math.nan if _missing(value) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return math.nan
