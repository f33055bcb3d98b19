"""`lengthbench context`: how much of the past lowers the loss of the same targets."""

from dataclasses import replace
from typing import Annotated, Any

from typer import Option

from lengthbench import lengths
from lengthbench.cli.guard import guarded
from lengthbench.cli.measuring import Asked, measuring, named


@guarded
@measuring
def context(
    asked: Asked,
    length: Annotated[str | None, Option(help="Longest context. [default: training length x 16]")] = None,
    base: Annotated[
        int | None, Option(help="Length the model is judged to know. [default: its training length]")
    ] = None,
    stride: Annotated[int | None, Option(help="Targets a group. [default: base / 8, at most 32]")] = None,
    groups: Annotated[int, Option(help="Groups of targets, each at the end of a block.")] = 24,
    epsilon: Annotated[float, Option(help="Nats within which a shorter context is as good as the best.")] = 0.01,
    swap: Annotated[bool, Option("--swap", help="Replace the far context by another document's on each rung.")] = False,
    affordable: Annotated[
        float | None,
        Option(help="Wanted width, in nats, of the intervals that decide the horizon: chooses --groups by a pilot."),
    ] = None,
) -> int:
    """Loss of the same targets with growing context: the best rung, and the horizon beyond which nothing is gained.

    Writes context.csv, context_summary.csv, blocks.csv, a manifest and a plot into a folder of its own.
    """
    from lengthbench.probes.context import ContextLadder

    wanted = () if length is None else lengths.parse(length, "--length")[-1:]
    probe = ContextLadder(wanted, base, stride, groups, epsilon, swap)
    if affordable is not None:
        from lengthbench.probes import affordable as pilots

        asked.note(pilots.announce(affordable))
        pilot = asked.measure(replace(probe, groups=pilots.PILOT), pilot=True)
        chosen = pilots.choose(pilot.tables["context"], affordable, epsilon)
        asked.note(chosen.text)
        probe = replace(probe, groups=chosen.groups)
    return asked.tell(asked.measure(probe), ("context_summary", "context"), _show)


def _show(console: Any, tables: dict[str, list[dict]]) -> None:
    from rich.table import Table

    rows = [row for row in tables["context"] if row["condition"] == "full"]
    contexts = sorted({row["context_max"] for row in rows})
    grid = Table(title=_title(rows), title_justify="left")
    grid.add_column("model")
    for size in contexts:
        grid.add_column(str(size), justify="right")
    grid.add_column("best", justify="right")
    grid.add_column("horizon", justify="right")
    for summary in tables["context_summary"]:
        own = {row["context_max"]: row for row in rows if _same(row, summary)}
        cells = [_cell(own.get(size)) for size in contexts]
        grid.add_row(named(summary), *cells, str(summary.get("best_rung") or ""), _horizon(summary))
    console.print(grid)


def _title(rows: list[dict]) -> str:
    scored = max((row.get("n_scored") or 0 for row in rows), default=0)
    return f"loss in nats by visible context, the same {scored:,} targets on every rung (± half of the 95 % interval)"


def _same(row: dict, summary: dict) -> bool:
    return all(row[name] == summary[name] for name in ("model", "scheme", "scheme_params"))


def _cell(row: dict | None) -> str:
    if row is None or row["status"] != "ok":
        return row["status"] if row else ""
    if row["ci_low"] is None:
        return f"{row['nll']:.3f}"
    return f"{row['nll']:.3f} ± {(row['ci_high'] - row['ci_low']) / 2:.2g}"


def _horizon(summary: dict) -> str:
    if summary["status"] != "ok":
        return summary["status"]
    low, high = summary.get("horizon_low"), summary.get("horizon_high")
    return f"{summary['horizon']}" + (rf" \[{low}, {high}]" if low is not None else "")
