"""`lengthbench report`: one self-contained HTML page of a run, or of several side by side."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from lengthbench.cli import options as o
from lengthbench.cli.guard import guarded, say
from lengthbench.errors import UserError


@guarded
def report(
    runs: Annotated[list[str], Argument(help="Run folders; several stand side by side.")],
    out: Annotated[
        str | None, Option(help="File of the page. [default: report.html in the run folder, if there is one run]")
    ] = None,
    json_: o.Json = False,
    quiet: o.Quiet = False,
) -> None:
    """One HTML page: the verdict, the figures, tables that sort, and the caveats that apply.

    The file needs no network and nothing beside it.
    """
    from lengthbench.report import page
    from lengthbench.report.runs import read

    found = read(runs)
    path = _place(out, [run.path for run in found])
    marks = [f"{run.path}: {run.mark}" for run in found if run.mark]
    text = page.html(found)
    page.write(text, path)
    if not quiet and not json_:
        for mark in marks:
            say(f"note: {mark}")
    size = len(text.encode())
    if json_:
        names = [str(run.path) for run in found]
        print(json.dumps({"report": str(path), "bytes": size, "runs": names, "notes": marks}, ensure_ascii=False))
    else:
        print(f"page: {path} ({size / 1000:,.0f} kB)")


def _place(out: str | None, runs: list[Path]) -> Path:
    if out is None:
        if len(runs) > 1:
            raise UserError(f"{len(runs)} runs: say where their page goes, --out FILE.html")
        return runs[0] / "report.html"
    path = Path(out).expanduser()
    if path.suffix.lower() not in (".html", ".htm") or path.is_dir():
        raise UserError(f"--out {out}: give a file that ends in .html")
    return path
