"""`lengthbench show RUN`: what a run is, without opening its files."""

import json
from pathlib import Path
from typing import Annotated

from typer import Argument

from lengthbench.cli import options as o
from lengthbench.cli.guard import guarded


@guarded
def show(run: Annotated[Path, Argument(help="Run folder.")], json_: o.Json = False) -> None:
    """What a run measured, with what, and what came out; --json gives its manifest."""
    from lengthbench.run import folder, listing

    if json_:
        print(json.dumps(folder.read_manifest(run), ensure_ascii=False))
        return
    found = listing.details(run)
    width = max(len(name) for name, _ in found)
    for name, text in found:
        first, *more = text.splitlines()
        print(f"{name:{width}}  {first}")
        for line in more:
            print(f"{'':{width}}  {line}")
