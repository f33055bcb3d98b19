"""`lengthbench attribute`: is the gain of longer windows relief of early tokens, or use of far ones?"""

from typing import Annotated, Any

from typer import Option

from lengthbench import lengths
from lengthbench.cli.guard import guarded
from lengthbench.cli.measuring import Asked, measuring, named


@guarded
@measuring
def attribute(
    asked: Asked,
    lengths_: Annotated[
        str | None,
        Option("--lengths", help="512..8192 | 512..2048+512 | 256,1k,4k. [default: training length x 1..16]"),
    ] = None,
    base: Annotated[
        int | None, Option(help="Length the model is judged to know. [default: its training length]")
    ] = None,
    method: Annotated[str, Option(help="cut and sliding, by commas.")] = "cut",
    stride: Annotated[
        int | None, Option(help="Targets a window. [default: base / 4 for cut, base / 8 for sliding]")
    ] = None,
    end_stride: Annotated[
        int | None,
        Option("--end-stride", help="Targets at a window's end for content use. [default: base / 2, at most 64]"),
    ] = None,
    sample: Annotated[int, Option(help="Measure one in so many cut windows; intervals widen.")] = 1,
    swap: Annotated[bool, Option(help="Replace the far context by another document's, to see if it is read.")] = True,
    top: Annotated[int, Option(help="Targets in the table of the largest content use.")] = 50,
    key_gain: Annotated[float, Option("--key-gain", help="LongPPL key tokens: loss of cut - full above it.")] = 2.0,
    key_loss: Annotated[float, Option("--key-loss", help="LongPPL key tokens: loss of full below it.")] = 2.0,
    from_: Annotated[
        str | None, Option("--from", help="A CSV of published perplexities instead of models: press2022 | FILE.csv")
    ] = None,
) -> int:
    """Splits the change from the base length to longer ones into early-token relief and what far tokens do.

    Writes attribution.csv, tokens.csv, splits.csv, ppl.csv, blocks.csv, a manifest and plots into a folder of its own.
    """
    from lengthbench.probes.attribution import Attribution

    wanted = () if lengths_ is None else lengths.parse(lengths_)
    methods = tuple(dict.fromkeys(m.strip() for m in method.split(",")))
    probe = Attribution(wanted, base, methods, stride, end_stride, sample, swap, top, key_gain, key_loss)
    if from_ is not None:
        from lengthbench import tabled

        return asked.tell(tabled.attribute(from_, base, wanted, asked.request), ("attribution",), _show)
    return asked.tell(asked.measure(probe), ("attribution", "splits", "tokens"), _show)


def _show(console: Any, tables: dict[str, list[dict]]) -> None:
    from rich.table import Table

    rows = tables["attribution"]
    grid = Table(title="change of the loss, in nats a token: positive is better when longer", title_justify="left")
    grid.add_column("model")
    for name in ("length", "ppl", "total", "early tokens", "beyond base", "content use", "reading"):
        grid.add_column(name, justify="left" if name == "reading" else "right")
    groups: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        key = (row["model"], row["scheme"], row["scheme_params"], row["method"], row["length"])
        groups.setdefault(key, {})[row["component"]] = row
    shown: tuple = ()
    for key, parts in groups.items():
        if shown and shown[:4] != key[:4]:
            grid.add_section()
        total = parts["total"]
        name = named(total) if shown[:4] != key[:4] else ""
        shown = key
        cells = [_nats(parts.get(c)) for c in ("total", "early_token", "beyond_base", "content_use")]
        grid.add_row(name, str(total["length"]), _ppl(total), *cells, total.get("reading") or total["status"])
    console.print(grid)


def _ppl(row: dict) -> str:
    from lengthbench import stats

    if row["status"] != "ok":
        return ""
    return " → ".join(f"{stats.ppl(row[side]):#.4g}".rstrip(".") for side in ("nll_from", "nll_to"))


def _nats(row: dict | None) -> str:
    if row is None:
        return ""
    if row["status"] != "ok":
        return row["status"]
    if row.get("nats_ci_low") is None:
        return f"{row['nats']:+.4f}"
    return f"{row['nats']:+.4f} ± {(row['nats_ci_high'] - row['nats_ci_low']) / 2:.2g}"
