"""The targets that gained most from far context, with the text around them: tokens.csv, for reading."""

from collections.abc import Sequence
from dataclasses import dataclass

from lengthbench.report.cells import Cell, cell
from lengthbench.report.runs import Row, Run, subject

MOST = 20
"""Targets shown of each model, at its longest length."""
NUMBERS = ("rank", "gain", "cut_nll", "swap_nll", "full_nll")


@dataclass(frozen=True)
class Passage:
    numbers: list[Cell]
    """In the order of NUMBERS."""
    before: str
    text: str
    after: str
    place: str


@dataclass(frozen=True)
class Passages:
    subject: str
    length: str
    base: str
    shown: list[Passage]
    n_rows: int
    """Of this model in tokens.csv, over all lengths."""
    run: str


def passages(runs: Sequence[Run]) -> list[Passages]:
    """One list for each model of each run."""
    found = []
    for run in runs:
        groups: dict[tuple[str, ...], list[Row]] = {}
        for row in run.rows("tokens"):
            groups.setdefault((row["model"], row["scheme"], row["scheme_params"], row["base_length"]), []).append(row)
        found += [_of(run, rows) for rows in groups.values()]
    return found


def _of(run: Run, rows: list[Row]) -> Passages:
    longest = max((row["length"] for row in rows), key=_number)
    own = sorted((row for row in rows if row["length"] == longest), key=lambda row: _number(row["rank"]))
    shown = [
        Passage(
            [cell(name, row.get(name, "")) for name in NUMBERS],
            row.get("before", ""),
            row.get("text", ""),
            row.get("after", ""),
            f"{row.get('doc', '')}, target {row.get('target', '')}",
        )
        for row in own[:MOST]
    ]
    return Passages(subject(rows[0]), longest, rows[0]["base_length"], shown, len(rows), run.name)


def _number(value: str) -> float:
    try:
        return float(value)
    except ValueError:
        return 0.0
