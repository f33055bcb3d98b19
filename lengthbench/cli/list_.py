"""`lengthbench list`: what there is to name after --model, --scheme, --task and --data, and the runs."""

import json
from typing import Annotated

from typer import Argument

from lengthbench import registry
from lengthbench.cli import options as o
from lengthbench.cli.guard import guarded, say
from lengthbench.errors import UserError

WHAT = ("models", "schemes", "tasks", "suites", "data", "runs")


@guarded
def list_(what: Annotated[str, Argument(help=" | ".join(WHAT))], json_: o.Json = False) -> None:
    """Models, schemes, tasks, suites or data that can be named, or the runs in results/, the latest first."""
    if what not in WHAT:
        raise UserError(f"list {what}: it lists {', '.join(WHAT)}")
    found = {
        "models": _models,
        "schemes": registry.names,
        "tasks": _tasks,
        "suites": _suites,
        "data": _data,
        "runs": _runs,
    }[what]()
    if json_:
        print(json.dumps(found, ensure_ascii=False))
        return
    if what == "runs" and not found:
        say("no runs in results/; lengthbench ppl makes one")
    width = max(map(len, found), default=0)
    for name, line in found.items():
        print(f"{name:{width}}  {line}")


def _models() -> dict[str, str]:
    from lengthbench.models import catalog, reference

    shipped = {f"reference:{name}": registry.names().get(name, "") for name in reference.family()}
    return {**shipped, **catalog.KINDS}


def _data() -> dict[str, str]:
    from lengthbench.corpora import source

    return source.shipped()


def _tasks() -> dict[str, str]:
    from lengthbench import tasks

    return tasks.names()


def _suites() -> dict[str, str]:
    from lengthbench import suite

    return {name: f"{line}  {suite.FOLDER / name}.toml" for name, line in suite.names().items()}


def _runs() -> dict[str, str]:
    from lengthbench.run import listing

    return {str(run.path): run.line for run in listing.runs()}
