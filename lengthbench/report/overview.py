"""The attribution in one line a length: total, early tokens, beyond base and content use beside each other."""

from collections.abc import Sequence

from lengthbench import stats
from lengthbench.report.cells import Cell, cell, change, is_number
from lengthbench.report.runs import Row, Run, subject
from lengthbench.report.tables import Column, View

COMPONENTS = {
    "total": "total",
    "early_token": "early tokens",
    "beyond_base": "beyond base",
    "length_effect": "length effect",
    "content_use": "content use",
}


def overview(runs: Sequence[Run]) -> View | None:
    """The table over all runs; None where none has an attribution."""
    groups: dict[tuple[str, ...], dict[str, Row]] = {}
    for run in runs:
        for row in run.rows("attribution"):
            key = (run.name, subject(row), row["method"], row["base_length"], row["length"])
            groups.setdefault(key, {})[row["component"]] = row
    if not groups:
        return None
    shown = [c for c in COMPONENTS if any(c in parts for parts in groups.values())]
    words, lengths = [Column("model", "model", False), Column("method", "method", False)], ("base_length", "length")
    columns = [Column("run", "run", False)] if len(runs) > 1 else []
    columns += words + [Column(name.replace("_", " "), name, True) for name in lengths]
    columns += [Column("ppl at base", "exp(nll_from) of total", True), Column("ppl", "exp(nll_to) of total", True)]
    columns += [Column(COMPONENTS[c], f"nats of {c}, half of its 95 % interval", True) for c in shown]
    columns.append(Column("reading", "reading", False))
    rows = [_row(key if len(runs) > 1 else key[1:], parts, shown) for key, parts in groups.items()]
    return View("Attribution at a glance: nats a token, positive is better when longer", columns, rows)


def _row(key: Sequence[str], parts: dict[str, Row], shown: Sequence[str]) -> list[Cell]:
    names = ("run", "model", "method", "base_length", "length")[-len(key) :]
    total = parts.get("total", {})
    cells = [cell(name, value) for name, value in zip(names, key, strict=True)]
    cells += [_ppl(total.get(side, "")) for side in ("nll_from", "nll_to")]
    for component in shown:
        row = parts.get(component, {})
        cells.append(change(*(row.get(c, "") for c in ("nats", "nats_ci_low", "nats_ci_high"))))
    status = total.get("status", "")
    return [
        *cells,
        Cell(total.get("reading", ""), "", total.get("reading", "")) if status == "ok" else cell("status", status),
    ]


def _ppl(nll: str) -> Cell:
    return cell("ppl", repr(stats.ppl(float(nll)))) if is_number(nll) else Cell("")
