"""What every measuring command shares: its options, the run itself, and how the outcome is told.

    @guarded
    @measuring
    def ppl(asked: Asked, lengths_: ..., protocol: ...) -> int: ...

The command sees its own options and an `Asked` that holds all others; `--help` lists both.
"""

import functools
import inspect
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lengthbench import errors
from lengthbench.cli import options as o
from lengthbench.model import LoadOptions
from lengthbench.request import Outcome, Request


def _before(
    model: o.Models = ["reference:all"],  # noqa: B006 (typer reads the default, nobody changes it)
    scheme: o.Schemes = [],  # noqa: B006
) -> None: ...


def _after(
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
    verbose: o.Verbose = False,
    executor: o.Executor = "local",
) -> None: ...


def measuring(command: Callable[..., int]) -> Callable[..., int]:
    """Give `command(asked, ...)` the shared options around its own."""
    own = list(inspect.signature(command).parameters.values())[1:]
    shared = [list(inspect.signature(f).parameters.values()) for f in (_before, _after)]
    parameters = [p.replace(kind=p.KEYWORD_ONLY) for p in (*shared[0], *own, *shared[1])]

    @functools.wraps(command)
    def run(**given: Any) -> int:
        mine = {p.name: given.pop(p.name) for p in own}
        return command(Asked(**given), **mine)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


class Asked:
    """The shared options as given."""

    def __init__(
        self, *, strict: bool, json_: bool, quiet: bool, verbose: bool, executor: str = "local", **given: Any
    ) -> None:
        if executor != "local":
            raise errors.UserError(
                f"--executor {executor}: passes run on this machine only; use local, or leave it out"
            )
        self.strict, self.json, self.quiet, self.verbose = strict, json_, quiet, verbose
        names = ("dtype", "device", "train_length", "allow_pickle", "allow_remote_code", "allow_missing")
        load = LoadOptions(**{name: given.pop(name) for name in names})
        models, schemes = tuple(given.pop("model")), tuple(given.pop("scheme"))
        self.request = Request(models=models, schemes=schemes, options=load, **given)

    @functools.cached_property
    def shown(self) -> Any:
        """Where a person is told what goes on."""
        from lengthbench.cli.progress import Shown

        return Shown(self.quiet or self.json, self.verbose)

    def note(self, text: str) -> None:
        self.shown.note(text)

    def measure(self, probe: Any, pilot: bool = False) -> Outcome:
        """Run `probe`; says first that torch has to be loaded. A pilot leaves no folder."""
        self.note("starting; torch takes a few seconds to load")
        from lengthbench.measure import measure

        request = replace(self.request, keep=False, dry_run=False) if pilot else self.request
        try:
            return measure(request, probe, self.shown)
        finally:
            self.shown.end()

    def tell(
        self,
        outcome: Outcome,
        tables: Sequence[str],
        show: Callable[[Any, dict[str, list[dict]]], None],
        n_summaries: int = 1,
    ) -> int:
        """One JSON document of `tables`, or what `show(console, tables)` prints; the exit code.

        The cells of the first `n_summaries` tables are counted.
        """
        rows = [row for name in tables[:n_summaries] for row in outcome.tables[name]]
        if self.json:
            named = {name: _finite(outcome.tables[name]) for name in tables}
            run = str(outcome.folder) if outcome.folder else None
            print(json.dumps({"run": run, "sentence": outcome.sentence, **named}, ensure_ascii=False))
        elif not self.request.dry_run:
            from lengthbench.cli.progress import stdout

            console = stdout()
            show(console, outcome.tables)
            console.print(outcome.sentence, soft_wrap=True, markup=False)
            _count(console, rows)
            _where(console, outcome.folder)
        failed = [row for row in rows if row["status"] != "ok"]
        return errors.INCOMPLETE if self.strict and failed else errors.OK


def named(row: dict[str, Any]) -> str:
    """The model as a table names it, for rich: its scheme in brackets where the name does not say it."""
    model, scheme = row["model"], row["scheme"]
    return (model if scheme in model else f"{model} [{scheme}]").replace("[", r"\[")


def _finite(rows: list[dict]) -> list[dict]:
    """JSON knows no infinity."""
    return [{k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in r.items()} for r in rows]


def _where(console: Any, folder: Path | None) -> None:
    if folder:
        console.print(f"tables and plots: {folder}", soft_wrap=True, markup=False)


def _count(console: Any, rows: list[dict]) -> None:
    failed: dict[str, int] = {}
    for row in rows:
        if row["status"] != "ok":
            failed[row["status"]] = failed.get(row["status"], 0) + 1
    if failed:
        counts = ", ".join(f"{n} {status}" for status, n in failed.items())
        console.print(f"{sum(failed.values())} of {len(rows)} cells have no numbers: {counts}", markup=False)
