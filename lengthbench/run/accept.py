"""A run becomes the reference: its tables, plots and manifest are copied to results/reference/NAME, as a whole.

results/reference/NAME.part   the copy              the old one stays until the new one stands
results/reference/NAME.old    what was there        gone once it does
"""

import json
import re
import shutil
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.run.folder import MANIFEST, now, read_manifest, slug
from lengthbench.run.listing import RESULTS

REFERENCES = RESULTS / "reference"
FAMILY = "family"
"""Name of the shipped models' reference."""


def name_of(run: Path, asked: str | None) -> str:
    """Name of the reference that `run` becomes: as asked, else `family` for shipped models, else its models' names."""
    if asked is not None:
        if not re.fullmatch(r"[A-Za-z0-9][\w.+-]*", asked) or asked.endswith((".part", ".old")):
            raise UserError(f"--as '{asked}': a name is letters, digits and . + - _, for example {FAMILY}")
        return asked
    names = [str(model["model"]) for model in read_manifest(run).get("models", [])]
    if not names:
        raise UserError(f"{run}: its manifest names no model; say --as NAME")
    if all(name.startswith("reference:") for name in names):
        return FAMILY
    return slug("+".join(dict.fromkeys(names)))


def check_acceptable(run: Path, name: str, root: Path = REFERENCES) -> dict[str, Any]:
    """The manifest of a run that can become a reference. Raises UserError if it cannot."""
    manifest = read_manifest(run)
    if manifest["status"] != "complete":
        raise UserError(f"accept {run}: it is {manifest['status']}; go on with it by --resume, then accept it")
    if run.resolve() == (root / name).resolve():
        raise UserError(f"accept {run}: that is the reference {name} itself; give the run that shall replace it")
    if not list(run.glob("*.csv")):
        raise UserError(f"accept {run}: it has no tables; make the run again")
    return manifest


def accept(run: Path, name: str, root: Path = REFERENCES) -> Path:
    """Make `run` the reference `name`; all of the old one goes."""
    manifest = check_acceptable(run, name, root)
    target = root / name
    part, old = root / f"{name}.part", root / f"{name}.old"
    try:
        for left in (part, old):  # of an earlier try that was killed
            if left.exists() and (target.exists() or left == part):
                shutil.rmtree(left)
        part.mkdir(parents=True)
        for table in sorted(run.glob("*.csv")):
            shutil.copyfile(table, part / table.name)
        if (run / "plots").is_dir():
            shutil.copytree(run / "plots", part / "plots")
        text = json.dumps({**manifest, "accepted": now()}, indent=2, sort_keys=True, ensure_ascii=False)
        (part / MANIFEST).write_text(text + "\n", "utf-8", newline="")
        if target.exists():
            target.rename(old)
        part.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(part, ignore_errors=True)
        raise UserError(f"accept {run}: cannot write {target}: {error.strerror}; the reference is as it was") from None
    return target
