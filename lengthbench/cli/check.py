"""`lengthbench check`: the regression gate."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from lengthbench.cli import options as o
from lengthbench.cli.guard import guarded, say
from lengthbench.errors import UserError

STYLES = {"worse": "red", "nonfinite": "red", "missing": "red", "not comparable": "yellow", "better": "green"}


@guarded
def check(
    run: Annotated[Path, Argument(help="Run folder to judge (or a CSV of one).")],
    baseline: Annotated[Path, Option("--baseline", "-b", help="Run folder, or a bare CSV: then points only.")],
    fail: Annotated[
        list[str],
        Option(
            "--fail",
            help="What counts as worse: ppl:1%, nll:0.01, content_use:0.005, exact:0.05, tokens_per_second:20%, ... "
            "[default: ppl:1%, content_use:0.005, exact:0.05]",
        ),
    ] = [],  # noqa: B006
    map_: Annotated[list[str], Option("--map", help="OLD=NEW: model OLD of the baseline is compared with NEW.")] = [],  # noqa: B006
    junit: Annotated[Path | None, Option("--junit", help="Write JUnit XML to this file.")] = None,
    markdown: Annotated[Path | None, Option("--markdown", help="Write a job summary to this file.")] = None,
    json_: o.Json = False,
    verbose: Annotated[bool, Option("--verbose", "-v", help="Show also the cells that are ok.")] = False,
) -> int:
    """Compare a run with a baseline, cell by cell, paired on the same targets.

    Exit code 1 if a cell is worse, missing or not finite; 2 if something is not comparable or the baseline cannot be
    used; else 0.
    """
    from lengthbench.check import annotations, document, gate, pair
    from lengthbench.check import junit as junit_xml
    from lengthbench.check import markdown as summary

    on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    try:
        report = gate.check(run, baseline, fail, pair.parse_map(map_))
    except UserError as error:
        if on_github:
            print(annotations.line("lengthbench check", str(error)), file=sys.stderr)
        raise
    if junit:
        _write("--junit", junit, junit_xml.text(report))
    if markdown:
        _write("--markdown", markdown, summary.text(report))
    if json_:
        print(json.dumps(document.of(report), ensure_ascii=False))
    else:
        show(report, verbose)
    if on_github:
        for line in annotations.lines(report):
            print(line, file=sys.stderr)
    if report.code:
        say(report.sentence)
    return report.code


def show(report: Any, verbose: bool) -> None:
    """The table and the notes; ok cells only if `verbose`."""
    from rich.table import Table

    from lengthbench.check.judge import number
    from lengthbench.cli.progress import stdout

    console = stdout()
    rows = report.judgements if verbose else [j for j in report.judgements if j.verdict != "ok"]
    if rows:
        grid = Table(title=f"{report.run} against {report.baseline}", title_justify="left")
        for name, justify in (
            ("verdict", "left"), ("cell", "left"), ("metric", "left"), ("baseline", "right"), ("now", "right"),
            ("change [95 % paired]", "right"), ("", "left"),
        ):  # fmt: skip
            grid.add_column(name, justify=justify)  # type: ignore[arg-type]
        for j in rows:
            why = j.reason or j.basis
            cells = [str(j.cell), j.metric, number(j.baseline), number(j.current), j.moved, why]
            grid.add_row(j.verdict, *(c.replace("[", r"\[") for c in cells), style=STYLES.get(j.verdict))
        console.print(grid)
    for note in report.notes:
        console.print(f"note: {note}", style="dim", markup=False, soft_wrap=True)
    counts = ", ".join(f"{n} {verdict}" for verdict, n in report.counts.items())
    console.print(
        f"{report.verdict}: {counts}; tolerated {', '.join(map(str, report.rules))}", markup=False, soft_wrap=True
    )


def _write(option: str, path: Path, text: str) -> None:
    try:
        path.write_text(text, "utf-8", newline="")
    except OSError as error:
        raise UserError(f"{option} {path}: cannot write there: {error.strerror}; give another file") from None
