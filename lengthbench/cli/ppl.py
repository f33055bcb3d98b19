"""`lengthbench ppl`: perplexity at growing lengths, on the same targets at every length."""

import math
from typing import Annotated, Any

from typer import Option

from lengthbench import lengths
from lengthbench.cli.guard import guarded
from lengthbench.cli.measuring import Asked, measuring, named


@guarded
@measuring
def ppl(
    asked: Asked,
    lengths_: Annotated[
        str | None,
        Option("--lengths", help="512..8192 | 512..2048+512 | 256,1k,4k. [default: training length x 1..32]"),
    ] = None,
    protocol: Annotated[str, Option(help="nonoverlapping, sliding and hf, by commas.")] = "nonoverlapping",
    stride: Annotated[int | None, Option(help="Targets a sliding window. [default: an eighth of the length]")] = None,
) -> int:
    """Perplexity at growing lengths, on the same targets at every length.

    Writes ppl.csv, blocks.csv, positions.csv, a manifest and plots into a folder of its own.
    """
    from lengthbench.probes.perplexity import Perplexity

    wanted = () if lengths_ is None else lengths.parse(lengths_)
    protocols = tuple(dict.fromkeys(p.strip() for p in protocol.split(",")))
    outcome = asked.measure(Perplexity(wanted, protocols, stride))
    return asked.tell(outcome, ("ppl",), _show)


def _show(console: Any, tables: dict[str, list[dict]]) -> None:
    from rich.table import Table

    rows = tables["ppl"]
    for protocol in dict.fromkeys(row["protocol"] for row in rows):
        those = [row for row in rows if row["protocol"] == protocol]
        columns = sorted({row["length"] for row in those})
        trained = sorted({row["train_length"] for row in those if row["train_length"]})
        grid = Table(title=_title(protocol, those, trained), title_justify="left")
        grid.add_column("model")
        for length in columns:
            grid.add_column(str(length), justify="right")
        by_model: dict[tuple, dict[int, dict]] = {}
        for row in those:
            by_model.setdefault((row["model"], row["scheme"], row["scheme_params"]), {})[row["length"]] = row
        for cells in by_model.values():
            grid.add_row(named(next(iter(cells.values()))), *(_cell(cells.get(length)) for length in columns))
        console.print(grid)


def _title(protocol: str, rows: list[dict], trained: list[int]) -> str:
    scored = max((row.get("n_scored") or 0 for row in rows), default=0)
    at = f", trained at {trained[0]}" if len(trained) == 1 else ""
    return f"perplexity by length, {protocol}, {scored:,} targets{at} (± half of the 95 % interval)"


def _cell(row: dict | None) -> str:
    if row is None:
        return ""
    if row["status"] != "ok":
        return row["status"]
    if row["ci_low"] is None or not math.isfinite(row["ppl"]):
        return f"{row['ppl']:.4g}"
    half = row["ppl"] * (row["ci_high"] - row["ci_low"]) / 2
    return f"{row['ppl']:.4g} ± {half:.2g}"
