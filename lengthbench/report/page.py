"""The page: one HTML file that needs nothing else, from one run or several side by side.

Whatever a run holds is escaped by the template, and a content security policy lets the page load nothing and run only
its own script. Characters that no reader can see, or that turn the direction of the text, show as their code.
"""

import base64
import hashlib
import json
import re
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from lengthbench.errors import UserError
from lengthbench.report import caveats, figures, findings, overview, passages, tables
from lengthbench.report.columns import BESIDE, COLUMNS
from lengthbench.report.runs import Run

HERE = Path(__file__).parent
LARGEST = 3_000_000
"""Bytes: what a mail or an issue takes without complaint."""
LISTED = 12
"""Entries of a list of the manifest that are shown."""
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def html(runs: Sequence[Run]) -> str:
    """The page of these runs. Raises UserError where it would be too large to be passed on."""
    style, script = ((HERE / name).read_text("utf-8") for name in ("page.css", "sort.js"))
    environment = Environment(
        autoescape=True,
        loader=FileSystemLoader(HERE),
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template("page.html.jinja").render(
        title=", ".join(run.name for run in runs),
        several=len(runs) > 1,
        runs=[{"run": run, "findings": findings.findings(run), **_about(run)} for run in runs],
        sections=figures.sections(runs),
        beside=[view for name in BESIDE if len(runs) > 1 and (view := tables.beside(name, runs))],
        overview=overview.overview(runs),
        tables=[view for name in COLUMNS if name != "splits" and (view := tables.view(name, runs))],
        splits=tables.view("splits", runs),
        passages=passages.passages(runs),
        passage_columns=passages.NUMBERS,
        caveats=caveats.caveats(runs),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
    )
    if (size := len(text.encode())) > LARGEST:
        raise UserError(
            f"the page would have {size / 1e6:.1f} MB, at most {LARGEST / 1e6:.0f} MB can be passed on; give fewer runs"
        )
    return text


def write(text: str, path: Path) -> Path:
    """Put the page at `path`, making its folder; a reader never sees half a file."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, "utf-8", newline="")
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise UserError(f"cannot write {path}: {error.strerror}; name another place by --out FILE.html") from None
    return path


def visible(value: Any) -> Any:
    """Text with what cannot be seen in it written out."""
    if not isinstance(value, str) or isinstance(value, Markup):
        return value
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", value)


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def _about(run: Run) -> dict[str, Any]:
    """Where the run comes from, in a few lines, and its manifest."""
    found = run.manifest
    argv, environment = found.get("argv"), found.get("environment")
    versions = environment.get("versions") if isinstance(environment, dict) else None
    models = dict.fromkeys(row["model"] for row in run.rows() if row.get("model"))
    lines = {
        "command": shlex.join(["lengthbench", *map(str, argv)]) if isinstance(argv, list) else "",
        "models": ", ".join(models),
        "data": ", ".join(dict.fromkeys(row["data"] for row in run.rows() if row.get("data"))),
        "measured": " to ".join(str(found[k]) for k in ("start", "end") if found.get(k)),
        "lengthbench": str(versions.get("lengthbench", "")) if isinstance(versions, dict) else "",
    }
    text = json.dumps(_short(found), indent=2, sort_keys=True, ensure_ascii=False)
    return {"facts": {name: value for name, value in lines.items() if value}, "manifest": text}


def _short(value: Any) -> Any:
    """Long lists without their middle."""
    if isinstance(value, dict):
        return {k: _short(v) for k, v in value.items()}
    if isinstance(value, list):
        more = [f"… and {len(value) - LISTED} more, in manifest.json"] if len(value) > LISTED else []
        return [_short(v) for v in value[:LISTED]] + more
    return value
