"""A canonical CSV: UTF-8, comma, `\\n`, dot decimals, rows sorted by key, unique keys, floats that round-trip.

Missing is an empty cell. Two equal runs write equal bytes, times and memory aside.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError

VOLATILE = ("seconds", "tokens_per_second", "peak_memory_bytes")
"""Columns in which two equal runs may differ."""


@dataclass(frozen=True)
class Schema:
    name: str
    """File name without `.csv`."""
    key: tuple[str, ...]
    """Columns that tell rows apart, and sort them."""
    values: tuple[str, ...]
    version: int = 1

    @property
    def columns(self) -> tuple[str, ...]:
        return (*self.key, *self.values, "schema")


def write(folder: Path, schema: Schema, rows: Iterable[Mapping[str, Any]]) -> Path:
    """Replace `folder/name.csv` at once; a reader never sees half a file."""
    path = folder / f"{schema.name}.csv"
    ordered = sorted(rows, key=lambda row: tuple(_order(row[k]) for k in schema.key))
    keys = [tuple(row[k] for k in schema.key) for row in ordered]
    assert len(set(map(str, keys))) == len(keys), f"{schema.name}: a key stands twice"
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(schema.columns)
    for row in ordered:
        stray = set(row) - set(schema.columns)
        assert not stray, f"{schema.name}: no column {stray}"
        cells = {**row, "schema": schema.version}
        writer.writerow([cell(cells.get(column)) for column in schema.columns])
    replace(path, text.getvalue())
    return path


def cell(value: Any) -> str:
    """One value as it stands in the file; None and NaN are empty."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, dict):
        return json.dumps(value, sort_keys=True) if value else ""
    return str(value)


def replace(path: Path, text: str) -> None:
    """Write `text` to `path` by way of a file beside it, so that a full disk leaves the old one."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, "utf-8", newline="")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise UserError(f"cannot write {path}: {error.strerror}; make room and go on with --resume") from None


def _order(value: Any) -> tuple[int, Any]:
    if value is None:
        return (0, 0)
    return (1, value) if isinstance(value, int | float) else (2, cell(value))
