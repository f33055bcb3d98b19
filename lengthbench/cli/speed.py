"""`lengthbench speed`: tokens a second and peak memory, relative to the first model."""

from typing import Annotated, Any

from typer import Option

from lengthbench import lengths
from lengthbench.cli import options as o
from lengthbench.cli.guard import guarded
from lengthbench.cli.measuring import Asked, named


@guarded
def speed(
    model: o.Models = [],  # noqa: B006 (typer reads the default, nobody changes it)
    scheme: Annotated[
        list[str],
        Option("--scheme", help="Put in place of the models' own; without --model, in an untrained reference decoder."),
    ] = [],  # noqa: B006
    lengths_: Annotated[
        str | None,
        Option(
            "--lengths",
            help="512..8192 | 512..2048+512 | 256,1k,4k. [default: training length x 1..8; of schemes 256..2048]",
        ),
    ] = None,
    phase: Annotated[
        str | None, Option(help="score, generate and train, by commas. [default: score; of schemes score,train]")
    ] = None,
    rounds: Annotated[int, Option(help="Times that each model has its turn.")] = 6,
    relative_to: Annotated[
        str | None, Option("--relative-to", help="Model whose speed is 1. [default: the first]")
    ] = None,
    dtype: o.Dtype = "auto",
    device: o.Device = "auto",
    batch_tokens: o.BatchTokens = 2048,
    train_length: o.TrainLength = None,
    allow_pickle: o.AllowPickle = False,
    allow_remote_code: o.AllowRemoteCode = False,
    allow_missing: o.AllowMissing = False,
    out: o.Out = None,
    resume: o.Resume = False,
    dry_run: o.DryRun = False,
    strict: o.Strict = False,
    json_: o.Json = False,
    quiet: o.Quiet = False,
    verbose: o.Verbose = False,
) -> int:
    """Tokens a second and peak memory of models, or of position schemes, in rounds that alternate between them.

    Writes speed.csv and a manifest into a folder of its own. Without --model and --scheme: the shipped family.
    """
    models = model or ([] if scheme else ["reference:all"])
    asked = Asked(
        strict=strict, json_=json_, quiet=quiet, verbose=verbose, model=models, scheme=scheme, dtype=dtype,
        device=device, train_length=train_length, allow_pickle=allow_pickle, allow_remote_code=allow_remote_code,
        allow_missing=allow_missing, batch_tokens=batch_tokens, out=out, resume=resume, dry_run=dry_run,
    )  # fmt: skip
    wanted = () if lengths_ is None else lengths.parse(lengths_)
    phases = () if phase is None else tuple(dict.fromkeys(p.strip() for p in phase.split(",")))
    from lengthbench.speed import Speed, compare

    probe = Speed(wanted, phases, rounds, relative_to)
    asked.note("starting; torch takes a few seconds to load")
    outcome = compare(asked.request, probe, asked.shown)
    return asked.tell(outcome, ("speed",), _show)


def _show(console: Any, tables: dict[str, list[dict]]) -> None:
    from rich.table import Table

    rows = tables["speed"]
    for phase in dict.fromkeys(row["phase"] for row in rows):
        those = [row for row in rows if row["phase"] == phase]
        title = f"{phase}: speed relative to {those[0]['relative_to']} [range over the rounds]".replace("[", r"\[")
        grid = Table(title=title, title_justify="left")
        for name in ("model", "length", "ratio", "tokens/s", "peak MiB", "route"):
            grid.add_column(name, justify="left" if name in ("model", "route") else "right")
        last = None
        for row in those:
            name = named(row)
            if last not in (None, name):
                grid.add_section()
            grid.add_row("" if name == last else name, str(row["length"]), *_cells(row), row["route"])
            last = name
        console.print(grid)


def _cells(row: dict) -> tuple[str, str, str]:
    """Ratio, tokens a second and memory."""
    if row["status"] != "ok":
        return row["status"], "", ""
    ratio = "" if row.get("ratio") is None else f"{row['ratio']:.2f}"
    if row.get("ratio_low") is not None:
        ratio += rf" \[{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]"
    return ratio, f"{row['tokens_per_second']:,.0f}", f"{row['peak_memory_bytes'] / 2**20:,.0f}"
