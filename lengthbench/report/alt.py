"""A figure in words, for those who do not see it: what it shows of each model, from the rows it was drawn from."""

from collections.abc import Iterable, Iterator

from lengthbench.report import findings
from lengthbench.report.cells import is_number, say
from lengthbench.report.runs import Row, Run, subject


def alt(figure: str, run: Run) -> str:
    """One sentence a model; the name of the figure where its rows say nothing."""
    said = {
        "attribution": _attribution,
        "perplexity": _perplexity,
        "positions": _positions,
        "ladder": _ladder,
    }.get(figure, _retrieval if run.tables.get("needle") else _nothing)
    return ". ".join(said(run)) or f"Figure {figure} of {run.name}"


def _nothing(run: Run) -> Iterator[str]:
    yield from ()


def _attribution(run: Run) -> Iterator[str]:
    for found in findings.attribution(run):
        yield f"{found.subject}: {found.reading}; {found.text}"


def _ladder(run: Run) -> Iterator[str]:
    for found in findings.ladder(run):
        yield found.line


def _perplexity(run: Run) -> Iterator[str]:
    for name, rows in _lines(run.rows("ppl"), "protocol"):
        at = [f"{say('ppl', float(row['ppl']))} at {row['length']}" for row in _ends(rows, "ppl")]
        failed = [f"{row['status']} at {row['length']}" for row in rows if row["status"] != "ok"][:1]
        yield f"{name}: perplexity {', '.join([*at, *failed])}"


def _positions(run: Run) -> Iterator[str]:
    for name, rows in _lines(run.rows("positions"), "protocol"):
        longest = max(float(row["length"]) for row in rows)
        own = _ends([row for row in rows if float(row["length"]) == longest], "nll")
        at = [f"{say('nll', float(row['nll']))} with {_contexts(row)}" for row in own]
        yield f"{name}, windows of {longest:.0f}: nats by tokens of context: {', '.join(at)}"


def _retrieval(run: Run) -> Iterator[str]:
    for name, rows in _lines(run.rows("needle"), "task"):
        known = [row for row in rows if is_number(row.get("exact_rate", ""))]
        rates = [
            f"{say('exact_rate', float(row['exact_rate']))} at {row['position']} of {row['length']}" for row in known
        ]
        yield f"{name}: exact {', '.join(rates)}" if rates else f"{name}: no cell with numbers"


def _contexts(row: Row) -> str:
    low, high = row["context_from"], row.get("context_to", "")
    return low if low == high else f"{low} to {high}"


def _lines(rows: Iterable[Row], column: str) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each model, and each value of `column` where there are several."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((subject(row), row.get(column, "")), []).append(row)
    several = len({value for _, value in groups}) > 1
    for (name, value), own in groups.items():
        yield f"{name}, {value}" if several else name, own


def _ends(rows: list[Row], value: str) -> list[Row]:
    """The first and last row with a number."""
    known = [row for row in rows if is_number(row.get(value, ""))]
    return known[:1] + known[1:][-1:]
