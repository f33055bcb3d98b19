"""`lengthbench run`: several probes over the same models and text, in one run folder."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context

from lengthbench.cli import attribute, context, needle, ppl, speed
from lengthbench.cli.guard import guarded
from lengthbench.cli.measuring import Asked, measuring
from lengthbench.request import Request

OPTION = {"models": "model", "schemes": "scheme"}
"""Keys of a suite whose option has another name."""
LOADING = ("dtype", "device", "train_length")
SHOW = {"ppl": ppl._show, "attribute": attribute._show, "context": context._show, "needle": needle._show}
SHOW["speed"] = speed._show
"""Kind of a probe -> what prints its tables."""
TABLES = {
    "ppl": ("ppl",),
    "attribute": ("attribution", "splits", "tokens"),
    "context": ("context_summary", "context"),
    "needle": ("needle", "contrasts"),
    "speed": ("speed",),
}
"""Kind of a probe -> the tables of its JSON document."""


@guarded
@measuring
def run(
    asked: Asked,
    given: Context,
    suite: Annotated[str, Argument(help="A shipped suite (lengthbench list suites) or a file.toml.")],
) -> int:
    """Run a suite: what it asks of ppl, attribute, context and needle, over the same models and text, in one folder.

    Windows that two probes want are fed once. Options given here win over what the file says. Speed comes first, and
    anew with --resume: rounds taken at different times do not compare.
    """
    from lengthbench import suite as suites
    from lengthbench.errors import UserError

    wanted = suites.read(suite)
    asked.request = request = _request(asked.request, wanted.settings, given)
    if not request.models:
        raise UserError(f"suite {wanted.name}: it names no model; say --model, for example --model ./my-checkpoint")
    kinds = list(dict.fromkeys(part.probe.command for part in wanted.probe.parts))
    asked.note(f"suite {wanted.name}: {', '.join(kinds)}; each model says what all of it costs before it runs")
    timed = None if wanted.speed is None else _timed(asked, wanted.speed)
    outcome = asked.measure(wanted.probe)
    if timed is not None:
        kinds.append("speed")
        outcome.tables["speed"] = timed
        if outcome.folder:
            _write_speed(outcome.folder, timed)
    summaries = [schema.name for schema in wanted.probe.summaries]
    names = dict.fromkeys([*summaries, *(name for kind in kinds for name in TABLES[kind])])
    protocols = {p for part in wanted.probe.parts if part.probe.command == "ppl" for p in part.probe.protocols}

    def show(console: Any, tables: dict[str, list[dict]]) -> None:
        rows = [row for row in tables.get("ppl", ()) if row["protocol"] in protocols]
        for kind in kinds:
            SHOW[kind](console, {**tables, "ppl": rows})

    return asked.tell(outcome, tuple(names), show, len(summaries))


def _timed(asked: Asked, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of speed.csv."""
    from lengthbench.speed import Speed, compare

    request = replace(asked.request, keep=False, resume=False)
    return compare(request, Speed(**wanted), asked.shown).tables["speed"]


def _write_speed(folder: Path, rows: list[dict[str, Any]]) -> None:
    from lengthbench.run import table
    from lengthbench.speed import SPEED

    table.write(folder, SPEED, rows)


def _request(request: Request, settings: Mapping[str, Any], given: Context) -> Request:
    """What the command line says, what the suite says where that is silent, and the defaults."""
    own = {}
    for key, value in settings.items():
        source = given.get_parameter_source(OPTION.get(key, key))
        if source is None or source.name == "DEFAULT":
            own[key] = value
    loading = {key: own.pop(key) for key in LOADING if key in own}
    return replace(request, options=replace(request.options, **loading), **own)
