"""`lengthbench ppl`: perplexity at growing lengths, on the same targets at every length."""

import json
import math
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from lengthbench import errors, lengths
from lengthbench.cli import options as o
from lengthbench.cli.guard import guarded


@guarded
def ppl(
    model: o.Models = ["reference:all"],  # noqa: B006 (typer reads the default, nobody changes it)
    scheme: o.Schemes = [],  # noqa: B006
    lengths_: Annotated[
        str | None,
        Option("--lengths", help="512..8192 | 512..2048+512 | 256,1k,4k. [default: training length x 1..32]"),
    ] = None,
    protocol: Annotated[str, Option(help="nonoverlapping, sliding and hf, by commas.")] = "nonoverlapping",
    stride: Annotated[int | None, Option(help="Targets a sliding window. [default: an eighth of the length]")] = None,
    data: o.Data = "novels",
    column: o.Column = None,
    split: o.Split = None,
    join: o.Join = "auto",
    max_tokens: o.MaxTokens = None,
    bos: o.Bos = "auto",
    dtype: o.Dtype = "auto",
    device: o.Device = "auto",
    batch_tokens: o.BatchTokens = 2048,
    train_length: o.TrainLength = None,
    allow_pickle: o.AllowPickle = False,
    allow_remote_code: o.AllowRemoteCode = False,
    allow_missing: o.AllowMissing = False,
    seed: o.Seed = 0,
    out: o.Out = None,
    resume: o.Resume = False,
    dry_run: o.DryRun = False,
    strict: o.Strict = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
) -> int:
    """Perplexity at growing lengths, on the same targets at every length.

    Writes ppl.csv, blocks.csv, positions.csv, a manifest and plots into a folder of its own.
    """
    wanted = None if lengths_ is None else lengths.parse(lengths_)
    from lengthbench.cli.progress import Shown

    shown = Shown(quiet or json_)
    shown.note("starting; torch takes a few seconds to load")
    from lengthbench.measure import sweep
    from lengthbench.model import LoadOptions
    from lengthbench.request import Request

    load = LoadOptions(dtype, device, None, train_length, allow_pickle, allow_remote_code, allow_missing)
    request = Request(
        tuple(model), tuple(scheme), data, column, split, join, max_tokens, bos, load, batch_tokens, seed, out, resume,
        dry_run,
    )  # fmt: skip
    protocols = tuple(dict.fromkeys(p.strip() for p in protocol.split(",")))
    outcome = sweep(request, wanted, protocols, stride, shown)
    rows = outcome.tables["ppl"]
    if json_:
        print(json.dumps(_document(outcome.folder, rows, outcome.sentence), ensure_ascii=False))
    elif not dry_run:
        _show(rows, outcome.sentence, outcome.folder)
    failed = [row for row in rows if row["status"] != "ok"]
    return errors.INCOMPLETE if strict and failed else errors.OK


def _document(folder: Path | None, rows: list[dict], sentence: str) -> dict[str, Any]:
    finite = [{k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in r.items()} for r in rows]
    return {"run": str(folder) if folder else None, "sentence": sentence, "ppl": finite}


def _show(rows: list[dict], sentence: str, folder: Path | None) -> None:
    from rich.table import Table

    from lengthbench.cli.progress import stdout

    console = stdout()
    protocols = list(dict.fromkeys(row["protocol"] for row in rows))
    for protocol in protocols:
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
        for (model, scheme, _), cells in by_model.items():
            name = model if model.endswith(scheme) else f"{model} [{scheme}]"
            grid.add_row(name.replace("[", r"\["), *(_cell(cells.get(length)) for length in columns))
        console.print(grid)
    console.print(sentence, soft_wrap=True, markup=False)
    _count(console, rows)
    if folder:
        console.print(f"tables and plots: {folder}", soft_wrap=True, markup=False)


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


def _count(console: Any, rows: list[dict]) -> None:
    failed: dict[str, int] = {}
    for row in rows:
        if row["status"] != "ok":
            failed[row["status"]] = failed.get(row["status"], 0) + 1
    if failed:
        counts = ", ".join(f"{n} {status}" for status, n in failed.items())
        console.print(f"{sum(failed.values())} of {len(rows)} cells have no numbers: {counts}", markup=False)
