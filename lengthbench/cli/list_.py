"""`lengthbench list`: what there is to name after --model, --scheme and --data."""

import json
from typing import Annotated

from typer import Argument

from lengthbench import registry
from lengthbench.cli import options as o
from lengthbench.cli.guard import guarded
from lengthbench.errors import UserError

WHAT = ("models", "schemes", "data")


@guarded
def list_(what: Annotated[str, Argument(help=" | ".join(WHAT))], json_: o.Json = False) -> None:
    """Models, schemes or data that can be named."""
    if what not in WHAT:
        raise UserError(f"list {what}: it lists {', '.join(WHAT)}")
    found = {"models": _models, "schemes": registry.names, "data": _data}[what]()
    if json_:
        print(json.dumps(found, ensure_ascii=False))
        return
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
