"""The tables a gate reads, and how strictly: a damaged file is refused, never half read."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lengthbench.errors import UserError
from lengthbench.probes import attribution_tables, context_tables, perplexity_tables

Row = dict[str, str]
ROLE = perplexity_tables.MODEL_KEY
"""Columns that say whose row it is."""


@dataclass(frozen=True)
class Table:
    place: tuple[str, ...]
    """Columns that find the row's partner: length, component, task, position."""
    settings: tuple[str, ...]
    """Columns that say how it was measured; the partner's must be the same."""
    counts: tuple[str, ...]
    """Columns that count the targets; the partner's must be the same."""
    value: str
    """Its main number: a row that is ok without it is not."""
    version: int = 1

    @property
    def key(self) -> tuple[str, ...]:
        return (*ROLE, *self.place, *self.settings)


TABLES = {
    "ppl": Table(("length",), ("protocol", "stride"), ("n_scored", "n_bytes"), "nll", perplexity_tables.PPL.version),
    "attribution": Table(
        ("length", "component"),
        ("method", "base_length", "stride"),
        ("n_scored",),
        "nats",
        attribution_tables.ATTRIBUTION.version,
    ),
    "context": Table(
        ("length", "rung", "condition"),
        ("stride", "context_min", "context_max"),
        ("n_scored", "n_bytes"),
        "nll",
        context_tables.CONTEXT.version,
    ),
    "needle": Table(("task", "length", "position"), ("mode", "task_version"), ("n_trials",), "exact_rate"),
    "speed": Table(("length", "phase"), (), (), "tokens_per_second"),
}
"""Summaries, by file name; the first whose columns a bare CSV has is what it is taken for."""
SETTINGS = ("data", "tokenizer", "bos_token", "template", "normaliser")
"""More columns that must be the same, in whatever table has them."""
ENVIRONMENT = ("train_length", "dtype", "device", "route", "batch")
"""Columns that may differ: such differences are noted, never judged."""
SUMS = {"blocks": perplexity_tables.BLOCKS.version, "trials": 1}
"""Tables of sums, with their schema version."""


def read(path: Path, version: int, key: Sequence[str]) -> list[Row]:
    """All rows. Raises UserError for a file that is cut short, has another schema, or a key twice."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read ({error}); it may be cut short, make the run again") from None
    if not lines:
        raise UserError(f"{path} is empty; make the run again")
    header, rows = lines[0], []
    lacking = [column for column in (*key, "schema") if column not in header]
    if lacking:
        raise UserError(f"{path}: it has no column {', '.join(lacking)}; give a table that lengthbench wrote")
    seen: dict[tuple[str, ...], int] = {}
    for number, cells in enumerate(lines[1:], 2):
        if len(cells) != len(header):
            raise UserError(
                f"{path}: row {number} has {len(cells)} cells, its header {len(header)}; it is cut short or damaged, "
                "make the run again"
            )
        row = dict(zip(header, cells, strict=True))
        if row.get("schema") != str(version):
            raise UserError(
                f"{path}: row {number} has schema version '{row.get('schema', '')}', this lengthbench reads {version}; "
                "make the run again with one version"
            )
        own = tuple(row[column] for column in key)
        if own in seen:
            raise UserError(f"{path}: rows {seen[own]} and {number} have the same key {' '.join(filter(None, own))}")
        seen[own] = number
        rows.append(row)
    return rows


def kind(path: Path) -> str:
    """Which table a bare CSV is, by its columns. Raises UserError if it is none that can be compared."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            header = next(csv.reader(file), [])
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    if not header:
        raise UserError(f"{path} is empty; make the run again")
    found = [name for name, table in TABLES.items() if {*table.key, table.value, "status"} <= set(header)]
    if not found:
        names = ", ".join(f"{name}.csv" for name in TABLES)
        raise UserError(f"{path}: its columns are those of none of {names}; give one of them, or a run folder")
    return found[0]
