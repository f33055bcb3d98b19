"""`lengthbench accept`: make a run the reference, after showing what that changes."""

import sys
from pathlib import Path
from typing import Annotated

from typer import Abort, Argument, Option, confirm

from lengthbench import errors
from lengthbench.cli.guard import guarded, say
from lengthbench.errors import UserError


@guarded
def accept(
    run: Annotated[Path, Argument(help="Complete run folder.")],
    as_: Annotated[
        str | None,
        Option("--as", help="Name of the reference. [default: family for the shipped models, else the model's name]"),
    ] = None,
    fail: Annotated[list[str], Option("--fail", help="Tolerances of the difference shown, as in check.")] = [],  # noqa: B006
    yes: Annotated[bool, Option("--yes", help="Do not ask; needed where there is no terminal.")] = False,
) -> int:
    """Make a run the reference results/reference/NAME: the only way a reference changes.

    The difference to the reference it replaces is shown first.
    """
    from lengthbench.check import side
    from lengthbench.run import accept as accepting

    name = accepting.name_of(run, as_)
    accepting.check_acceptable(run, name)
    loaded = side.load(run)
    broken = next((c for c in loaded.cells if c.status in ("oom", "error")), None)
    if broken:
        raise UserError(f"accept {run}: {broken} has status {broken.status}: {broken.detail}; measure it first")
    side.usable(loaded)
    target = accepting.REFERENCES / name
    _difference(run, target, fail)
    if not yes:
        if not sys.stdin.isatty():
            raise UserError(f"accept {run}: nobody is here to ask; look at the difference above and give --yes")
        try:
            agreed = confirm(f"Make {run} the reference {target}?")
        except Abort:  # Ctrl-C at the question
            say(f"interrupted; {target} stays as it was")
            return errors.INTERRUPTED
        if not agreed:
            say(f"{target} stays as it was")
            return errors.OK
    print(f"reference: {accepting.accept(run, name)}")
    return errors.OK


def _difference(run: Path, target: Path, fail: list[str]) -> None:
    """What check would say against the reference that is there; its verdict decides nothing here."""
    from lengthbench.check import gate
    from lengthbench.cli.check import show

    if not target.exists():
        print(f"{target} is new")
        return
    try:
        show(gate.check(run, target, fail), verbose=True)
    except UserError as error:
        print(f"no difference can be shown: {error}")
