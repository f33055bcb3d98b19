"""A run folder: made and checked for writing before a model loads, one run each, resumed only by equal settings.

One process at a time has it, from `open_run` until `refuse` or `finish`.
"""

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
from lengthbench.run.lock import Lock
from lengthbench.run.table import replace

MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
LONGEST_NAME = 60
"""Characters of a model name in a folder name; longer ones are cut and get a hash."""
ROOM = 1 << 16
"""Bytes that must fit into a new run folder, so that a full disk is said before anything is computed."""
PACKAGES = ("torch", "transformers", "tokenizers", "datasets", "numpy", "pandas", "safetensors")


class RunFolder:
    """`path` with its manifest. `settings` is everything that decides the numbers."""

    def __init__(self, path: Path, manifest: dict[str, Any], lock: Lock | None = None) -> None:
        self.path, self.manifest, self.lock = path, manifest, lock

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
        empty = not self.complete and not (self.path / JOURNAL).exists()
        if empty:
            (self.path / MANIFEST).unlink(missing_ok=True)
        self._unlock()
        if empty:
            release(self.path)

    def finish(self, status: str, **fields: Any) -> None:
        self.update(status=status, end=now(), **fields)
        self._unlock()

    def _unlock(self) -> None:
        if self.lock:
            self.lock.open()


def open_run(out: str | None, command: str, models: list[str], settings: dict, resume: bool) -> RunFolder:
    """The folder for this run: a new one, or with `resume` the one that holds its finished part.

    Raises UserError if it cannot be written, is a file, holds another run, or there is nothing to resume.
    """
    settings = json.loads(json.dumps(settings, default=str))
    for name, value in settings.items():
        _check_utf8(name, value)
    if resume:
        return _resume(_find(out, settings), settings)
    path = Path("results") / f"{_stamp()}-{command}-{slug('+'.join(models))}" if out is None else named(out)
    claim(path)
    lock = Lock(path)
    if (path / MANIFEST).exists():
        lock.open()
        raise UserError(f"--out {path} already holds a run; go on with it by --resume, or give another folder")
    run = RunFolder(path, {"status": "running", "command": command, "settings": settings, "start": now()}, lock)
    try:
        run.update(argv=masked(sys.argv[1:]), environment=environment())
    except UserError:
        run.refuse()
        raise
    return run


def named(out: str) -> Path:
    """The folder that --out names, there or not. Raises UserError for a file and for what can be no folder."""
    _check_utf8("--out", str(out))
    if not str(out).strip():
        raise UserError(f"--out '{out}': empty; give a folder, or leave --out away")
    try:
        path = Path(out).expanduser()
        taken = path.is_file()
    except (OSError, RuntimeError) as error:  # too long, closed to this user; a ~user who is not there
        raise UserError(f"--out {out}: cannot write there: {getattr(error, 'strerror', None) or error}") from None
    if taken or path.suffix.lower() in (".csv", ".json", ".jsonl", ".parquet", ".png", ".html"):
        raise UserError(f"--out {path}: give a folder, the tables get names of their own in it")
    return path


def _check_utf8(name: str, value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise UserError(f"{name} {value!r}: no UTF-8, so no table can name it; rename it") from None


def claim(path: Path) -> None:
    """Make the folder and write into it once, before anything is computed that would have no place to go."""
    probe = path / ".writable"
    try:
        path.mkdir(parents=True, exist_ok=True)
        try:
            probe.write_bytes(bytes(ROOM))
        finally:
            probe.unlink(missing_ok=True)
    except OSError as error:
        release(path)
        raise UserError(f"--out {path}: cannot write there: {error.strerror}") from None


def release(path: Path) -> None:
    """Take a claimed folder away again, if nothing was put into it."""
    try:
        path.rmdir()
    except OSError:
        pass  # it has files, or the disk is gone


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


def _find(out: str | None, settings: dict) -> Path:
    if out is not None:
        return named(out)
    for manifest in sorted(Path("results").glob(f"*/{MANIFEST}"), reverse=True):
        try:
            found = read_manifest(manifest.parent)
        except UserError:
            continue  # another's, or damaged: not the one that is looked for
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
    lock = Lock(path)
    return RunFolder(path, read_manifest(path), lock)  # again: until now another one may have written it


def read_manifest(path: Path) -> dict[str, Any]:
    file = path / MANIFEST
    try:
        found = json.loads(file.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise UserError(f"{path} is not a run folder: it has no {MANIFEST}") from None
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise UserError(f"{file} is damaged: {error}") from None
    if not isinstance(found, dict) or not {"settings", "status"} <= found.keys():
        raise UserError(f"{file} is not that of a run: it has no settings and status")
    return found


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
