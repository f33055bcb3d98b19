"""One side of a comparison: a run folder, or a bare CSV, as cells."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lengthbench import stats
from lengthbench.check.cell import Cell, Role
from lengthbench.check.sums import Blocks, Trials
from lengthbench.check.tables import SUMS, TABLES, Row, kind, read
from lengthbench.errors import UserError
from lengthbench.run.folder import MANIFEST, read_manifest

SIZE = {"ppl": "n_blocks", "context": "n_groups", "attribution": "n_blocks", "needle": "n_trials"}
"""Column that counts the units behind a row."""
SUMMED = {
    "nll": "nll",
    "nats": "nats",
    "exact": "exact_rate",
    "choice": "choice_rate",
    "answer_nll": "answer_nll",
    "evidence_gain": "evidence_gain",
}
"""Sums, and the column that their ratio must give."""
SUMMARY = {"ppl": "ppl", "attribute": "attribution", "context": "context", "needle": "needle", "speed": "speed"}
"""Command -> the table whose rows its manifest counts."""


@dataclass(frozen=True)
class Side:
    path: Path
    cells: tuple[Cell, ...]
    manifest: dict[str, Any] = field(default_factory=dict)
    """Empty for a bare CSV, and for a folder that has none."""
    orphans: tuple[str, ...] = ()
    """Cells that have sums, but no row: it was cut off."""

    @property
    def bare(self) -> bool:
        return self.path.is_file()

    @property
    def roles(self) -> list[Role]:
        return list(dict.fromkeys(cell.role for cell in self.cells))

    @property
    def data_sha256(self) -> str:
        known = self.manifest.get("data")
        return str(known.get("sha256", "")) if isinstance(known, dict) else ""

    @property
    def complete(self) -> bool:
        return self.manifest.get("status", "complete") == "complete"


def load(path: Path) -> Side:
    """Every cell there is. Raises UserError if it is no run, or damaged."""
    if path.is_file():
        name = kind(path)
        rows = read(path, TABLES[name].version, TABLES[name].key)
        return Side(path, tuple(Cell(name, row) for row in rows))
    names = [name for name in TABLES if (path / f"{name}.csv").is_file()]
    manifest = read_manifest(path) if (path / MANIFEST).exists() or not names else {}
    blocks = Blocks(_sums(path, "blocks"))
    trials = Trials(_sums(path, "trials"))
    rows = {name: read(path / f"{name}.csv", TABLES[name].version, TABLES[name].key) for name in names}
    cells = []
    for name in names:
        source = {"ppl": blocks.ppl, "context": blocks.context, "attribution": blocks.attribution}
        sums_of = source.get(name, trials.needle if name == "needle" else lambda row: {})
        has_sums = (path / ("trials.csv" if name == "needle" else "blocks.csv")).exists()
        _check_count(path, name, rows[name], manifest)
        for row in rows[name]:
            cell = Cell(name, row, sums_of(row) if has_sums else {})
            if has_sums and name in SIZE and cell.status == "ok" and not cell.flaw:
                _check(path, cell)
            cells.append(cell)
    return Side(path, tuple(cells), manifest, tuple(blocks.unclaimed(rows) + trials.unclaimed(rows)))


def usable(side: Side) -> Side:
    """The side as a baseline. Raises UserError if it is not complete, has no cell, or one without a true number."""
    if not side.complete:
        raise UserError(
            f"unusable baseline {side.path}: that run is {side.manifest['status']}; go on with it by --resume"
        )
    if side.orphans:
        raise UserError(
            f"unusable baseline {side.path}: {side.orphans[0]} has sums, but no row in a summary; a file is cut short "
            "or changed, make the run again"
        )
    flawed = [cell for cell in side.cells if cell.flaw]
    if flawed:
        more = f" and {len(flawed) - 1} more" if len(flawed) > 1 else ""
        raise UserError(
            f"unusable baseline {side.path}: {flawed[0]}: {flawed[0].flaw}{more}; measure it again, or take another run"
        )
    if not any(cell.status == "ok" for cell in side.cells):
        raise UserError(f"unusable baseline {side.path}: no cell in it has a number; take another run")
    return side


def _sums(path: Path, name: str) -> list[Row]:
    file = path / f"{name}.csv"
    if not file.exists():
        return []
    key = ("model", "scheme", "scheme_params", "length", "status")
    own = ("protocol", "stride", "condition", "doc", "block", "n_scored", "nll_sum")
    if name == "trials":
        own = (*Trials.CELL, "arm", "trial")
    return read(file, SUMS[name], tuple(dict.fromkeys((*key, *own))))


def _check_count(path: Path, name: str, rows: list[Row], manifest: dict[str, Any]) -> None:
    """The manifest counts the rows of its command's summary: fewer are a file cut at a line's end."""
    counted = manifest.get("rows_per_status")
    if SUMMARY.get(str(manifest.get("command"))) != name or not isinstance(counted, dict):
        return
    if sum(counted.values()) != len(rows):
        raise UserError(
            f"{path / name}.csv has {len(rows)} rows, its manifest counts {sum(counted.values())}; "
            "it is cut short or changed, make the run again"
        )


def _check(path: Path, cell: Cell) -> None:
    """Sums and summary must say the same, or one of the files is damaged."""
    size = cell.number(SIZE[cell.table])
    for name, column in SUMMED.items():
        sums = cell.sums.get(name)
        value = cell.number(column)
        if sums is None or value is None:
            continue
        if size is not None and len(sums) != size:
            _refuse(path, cell, f"{len(sums)} {_units(cell)} where it counts {size:g}")
        found = stats.ratio([a for a, _ in sums.values()], [b for _, b in sums.values()])
        if math.isfinite(found) and not math.isclose(found, value, rel_tol=1e-6, abs_tol=1e-7):
            _refuse(path, cell, f"{_units(cell)} that give {column} {found:.9g} where it says {value:.9g}")
    if size and not cell.sums:
        _refuse(path, cell, f"no {_units(cell)} where it counts {size:g}")


def _units(cell: Cell) -> str:
    return "trials" if cell.table == "needle" else "blocks"


def _refuse(path: Path, cell: Cell, why: str) -> None:
    file = "trials.csv" if cell.table == "needle" else "blocks.csv"
    raise UserError(
        f"{path / file}: for {cell} of {cell.table}.csv it has {why}; a file is cut short or changed, "
        "make the run again"
    )
