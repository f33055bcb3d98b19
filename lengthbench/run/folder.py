"""A run folder: made and checked for writing before a model loads, one run each, resumed only by equal settings."""

import datetime
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.run.table import replace

MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
LONGEST_NAME = 60
"""Characters of a model name in a folder name; longer ones are cut and get a hash."""
PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "numpy", "pandas", "safetensors")


class RunFolder:
    """`path` with its manifest. `settings` is everything that decides the numbers."""

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path, self.manifest = path, manifest

    @property
    def complete(self) -> bool:
        return self.manifest["status"] == "complete"

    def update(self, **fields: Any) -> None:
        """Add to the manifest and write it."""
        self.manifest.update(fields)
        text = json.dumps(self.manifest, indent=2, sort_keys=True, ensure_ascii=False, default=str)
        replace(self.path / MANIFEST, text + "\n")

    def refuse(self) -> None:
        """Nothing was measured: the folder may be used again, and goes if there is nothing else in it."""
        if (self.path / JOURNAL).exists():
            return
        (self.path / MANIFEST).unlink(missing_ok=True)
        try:
            self.path.rmdir()
        except OSError:
            pass  # it had files before, or the disk is gone

    def finish(self, status: str, **fields: Any) -> None:
        self.update(status=status, end=now(), **fields)


def open_run(out: str | None, command: str, models: list[str], settings: dict, resume: bool) -> RunFolder:
    """The folder for this run: a new one, or with `resume` the one that holds its finished part.

    Raises UserError if it cannot be written, is a file, holds another run, or there is nothing to resume.
    """
    settings = json.loads(json.dumps(settings, default=str))
    if resume:
        return _resume(_find(out, settings), settings)
    path = Path(out) if out else Path("results") / f"{_stamp()}-{command}-{slug('+'.join(models))}"
    _refuse_file(path)
    if (path / MANIFEST).exists():
        raise UserError(f"--out {path} already holds a run; go on with it by --resume, or give another folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe = path / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise UserError(f"--out {path}: cannot write there: {error.strerror}") from None
    run = RunFolder(path, {"status": "running", "command": command, "settings": settings, "start": now()})
    run.update(argv=masked(sys.argv[1:]), environment=environment())
    return run


def slug(name: str) -> str:
    """A name safe in any file system; a hash keeps two names apart that only look alike in it."""
    safe = re.sub(r"[^A-Za-z0-9.+-]+", "-", name).strip("-.") or "model"
    if safe == name.replace(":", "-") and len(safe) <= LONGEST_NAME:
        return safe
    return f"{safe[-LONGEST_NAME:].strip('-.')}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def masked(argv: list[str]) -> list[str]:
    """The command line without what a URL may carry in front of its host."""
    return [re.sub(r"//[^/@\s]+@", "//***@", word) for word in argv]


def environment() -> dict[str, Any]:
    """What the numbers were made with."""
    versions = {"python": platform.python_version(), "lengthbench": version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "versions": versions,
        "git_commit": _git_commit(),
        "machine": {"system": platform.platform(), "processor": _processor(), "cores": os.cpu_count()},
    }


def version() -> str:
    try:
        return metadata.version("lengthbench")
    except metadata.PackageNotFoundError:
        return "unknown"


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _stamp() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")[:-5] + "Z"


def _refuse_file(path: Path) -> None:
    if path.suffix.lower() in (".csv", ".json", ".jsonl", ".parquet", ".png", ".html") or path.is_file():
        raise UserError(f"--out {path}: give a folder, the tables get names of their own in it")


def _find(out: str | None, settings: dict) -> Path:
    if out:
        _refuse_file(Path(out))
        return Path(out)
    for manifest in sorted(Path("results").glob(f"*/{MANIFEST}"), reverse=True):
        found = read_manifest(manifest.parent)
        if found["settings"] == settings and found["status"] != "complete":
            return manifest.parent
    raise UserError("--resume: no unfinished run with these settings in results/; name its folder with --out")


def _resume(path: Path, settings: dict) -> RunFolder:
    manifest = read_manifest(path)
    changed = sorted(k for k in {*settings, *manifest["settings"]} if settings.get(k) != manifest["settings"].get(k))
    if changed:
        name = changed[0]
        raise UserError(
            f"--resume {path}: {', '.join(changed)} changed ({name} was {manifest['settings'].get(name)}, "
            f"is {settings.get(name)}); old rows are never reused, give another --out"
        )
    return RunFolder(path, manifest)


def read_manifest(path: Path) -> dict[str, Any]:
    file = path / MANIFEST
    if not file.is_file():
        raise UserError(f"{path} is not a run folder: it has no {MANIFEST}")
    try:
        return json.loads(file.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise UserError(f"{file} is damaged: {error}") from None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def _git_commit() -> str | None:
    """Commit of the source tree lengthbench runs from; None where it is installed without one."""
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    try:
        out = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    return out.stdout.strip() or None
