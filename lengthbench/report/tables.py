"""Tables to sort: the columns a reader needs, over all runs, with what is the same in every row said once above."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lengthbench.report.cells import Cell, cell, interval, is_number
from lengthbench.report.columns import BESIDE, BY_MODEL, COLUMNS, HOISTED, LABELS, TITLES
from lengthbench.report.runs import Row, Run

MOST = 400
"""Rows shown of a table; the others stay in its file."""


@dataclass(frozen=True)
class Column:
    label: str
    name: str
    """In the file."""
    number: bool


@dataclass(frozen=True)
class View:
    title: str
    columns: list[Column]
    rows: list[list[Cell]]
    same: str = ""
    """What holds for every row."""
    by_model: str = ""
    """What holds for every row of a model."""
    note: str = ""


def view(name: str, runs: Sequence[Run]) -> View | None:
    """The table `name` of all runs; None where none has it."""
    found = [(run, row) for run in runs for row in run.rows(name)]
    if not found:
        return None
    note = f"the first {MOST} of {len(found):,} rows; all are in {name}.csv" if len(found) > MOST else ""
    return _view(TITLES[name], found[:MOST], _columns(name, [row for _, row in found]), len(runs) > 1, note)


def beside(name: str, runs: Sequence[Run]) -> View | None:
    """One value of each run on what several of them measured alike; None where there is no such row."""
    runs = [run for run in runs if name in run.tables]
    value, key = BESIDE[name], [c for c in COLUMNS[name] if isinstance(c, str)]
    key = [c for c in key[: key.index(value)] if c != "depth"]  # depth is a result: the one that was achieved
    by: dict[tuple[str, ...], dict[str, str]] = {}
    for run in runs:
        for row in run.rows(name):
            by.setdefault(tuple(row.get(c, "") for c in key), {})[run.name] = row.get(value, "")
    shared = [(at, values) for at, values in by.items() if sum(v != "" for v in values.values()) > 1]
    if not shared:
        return None
    rows = [dict(zip(key, at, strict=True)) for at, _ in shared[:MOST]]
    names = _columns(name, rows)
    kept = [c for c in key if c in names and (c not in HOISTED or len({row[c] for row in rows}) > 1)]
    kept = [c for c in kept if c not in _by_model([c], rows)]
    columns = [_column(c, [row[c] for row in rows]) for c in kept]
    columns += [Column(run.name, value, True) for run in runs]
    values = [[cell(value, own.get(run.name, "")) for run in runs] for _, own in shared[:MOST]]
    cells = [[cell(c, row[c]) for c in kept] + more for row, more in zip(rows, values, strict=True)]
    return View(f"Side by side: {LABELS.get(value, value.replace('_', ' '))}", columns, cells)


def _columns(name: str, rows: Sequence[Row]) -> list[str | tuple[str, str]]:
    """Those with something in them; the scheme goes where every model's name says it."""
    found = [c for c in COLUMNS[name] if any(row.get(c if isinstance(c, str) else c[0]) for row in rows)]
    if all(row.get("scheme", "") in row.get("model", "") for row in rows):
        found = [c for c in found if c != "scheme"]
    return found


def _view(title: str, found: Sequence[tuple[Run, Row]], names: list, several: bool, note: str) -> View:
    rows = [row for _, row in found]
    same = [c for c in names if c in HOISTED and len(rows) > 1 and len({row.get(c, "") for row in rows}) == 1]
    own = _by_model([c for c in names if c not in same], rows)
    columns: list[Column] = [Column("run", "run", False)] if several else []
    makers: list[Callable[[Run, Row], Cell]] = [lambda run, _: cell("run", run.name)] if several else []
    for c in (c for c in names if c not in same and c not in own):
        if isinstance(c, str):
            columns.append(_column(c, [row.get(c, "") for row in rows]))
            makers.append(lambda _, row, c=c: cell(c, row.get(c, "")))
        else:
            of = columns[-1].name
            columns.append(Column(f"{_label(of)} 95 %", ", ".join(c), True))
            makers.append(lambda _, row, c=c, of=of: interval(of, row.get(c[0], ""), row.get(c[1], "")))
    cells = [[make(*both) for make in makers] for both in found]
    by_model = [f"{name}: {said}" for name, row in _models(rows).items() if (said := _words(own, row))]
    return View(title, columns, cells, _words(same, rows[0]), "; ".join(by_model), note)


def _by_model(names: Sequence, rows: Sequence[Row]) -> list[str]:
    """Those of BY_MODEL among the names in which every row of a model says the same."""
    models = _models(rows)
    return [c for c in BY_MODEL if c in names and all(row.get(c) == models[row["model"]].get(c) for row in rows)]


def _models(rows: Sequence[Row]) -> dict[str, Row]:
    """A row of each."""
    return {row["model"]: row for row in reversed(rows)}


def _words(names: Sequence[str], row: Row) -> str:
    return " · ".join(f"{_label(c)} {cell(c, row[c]).text}" for c in names if row.get(c))


def _column(name: str, values: Sequence[str]) -> Column:
    known = [v for v in values if v]
    return Column(_label(name), name, bool(known) and all(is_number(v) for v in known))


def _label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))
