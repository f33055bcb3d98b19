"""Data sets of the hub, or of a folder that the datasets library understands: `hub:NAME[/CONFIG][:SPLIT]`.

    hub:org/name    hub:org/name/config    hub:org/name:test    hub:name    hub:./folder:train

NAME is `org/name`, so a config needs the organisation. What exists as a folder, or looks like a path, is one.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lengthbench.corpora import tables
from lengthbench.corpora.text import Texts
from lengthbench.errors import UserError

PREFERRED = ("test", "validation")


def read(spec: str, column: str, split: str | None) -> Texts:
    """Rows of one split. Without a split: test, else validation, else the only one; it is recorded."""
    import datasets

    name, config, named = parse(spec)
    if split and named and split != named:
        raise UserError(f"--data {spec}: it names the split '{named}', --split says '{split}'; give one of them")
    with _silent():
        try:
            found = datasets.load_dataset(name, config)
        except Exception as error:  # the library lets through whatever its many backends raise
            raise UserError(f"--data {spec}: {_why(name, error)}") from None
        chosen = _choose(spec, split or named, [str(s) for s in found])
        rows = found[chosen]
        if column not in rows.column_names:
            raise tables.no_column(f"{spec} (split {chosen})", column, rows.column_names)
        values = rows.select_columns([column])[:][column]
    texts = tables.texts(enumerate(({column: v} for v in values), 1), column, f"{spec} (split {chosen})", "row")
    notes = [] if split or named else [f"{spec}: the split '{chosen}' was read; --split names another"]
    if _offline() and not Path(name).exists():
        notes.append(f"{spec}: offline, so the copy in the cache was read")
    read_as = {"dataset": name, "config": config, "split": chosen, "column": column}
    return Texts(spec, tuple(texts), tuple(notes), read_as)


def parse(spec: str) -> tuple[str, str | None, str | None]:
    """`hub:org/name/config:split` -> ("org/name", "config", "split"); a local folder has no config."""
    name, _, split = spec.removeprefix("hub:").partition(":")
    if not name:
        raise UserError(f"--data {spec}: write hub:NAME[/CONFIG][:SPLIT]")
    path = Path(name).expanduser()
    if name.startswith((".", "/", "~")) or path.exists():
        if not path.is_dir():
            what = "is a file; name it without hub:" if path.exists() else "no such folder"
            raise UserError(f"--data {spec}: {path}: {what}")
        return str(path), None, split or None
    parts = name.split("/")
    return "/".join(parts[:2]), "/".join(parts[2:]) or None, split or None


def _choose(spec: str, split: str | None, splits: list[str]) -> str:
    if split is None:
        split = next((s for s in PREFERRED if s in splits), splits[0] if len(splits) == 1 else None)
    if split not in splits:
        asked = f"no split '{split}'" if split else "several splits, none called test or validation"
        raise UserError(f"--data {spec}: {asked}; it has: {', '.join(splits)}; name one with --split")
    return split


def _why(name: str, error: Exception) -> str:
    """One line for what the library raised."""
    text = " ".join(str(error).split())
    if "scripts are no longer supported" in text:
        return f"{name} needs a loading script, which datasets runs no more; use a parquet or json copy"
    if "OfflineModeIsEnabled" in text + type(error).__name__:
        return f"offline (HF_HUB_OFFLINE is set) and {name} is not in the cache; load it once online"
    if type(error).__name__ == "DatasetNotFoundError":
        if "gated" in text:
            return f"{name} is gated: accept its terms on the hub, then log in with `hf auth login`"
        return f"the hub has no data set {name}, or it is not open to you; check the name, or log in"
    if isinstance(error, ConnectionError):
        return f"the hub cannot be reached for {name}; HF_HUB_OFFLINE=1 reads what is in the cache"
    cause = f" ({' '.join(str(error.__cause__).split())})" if error.__cause__ else ""
    return f"cannot be loaded: {text or type(error).__name__}{cause}"


def _offline() -> bool:
    import huggingface_hub

    return huggingface_hub.constants.HF_HUB_OFFLINE


@contextmanager
def _silent() -> Iterator[None]:
    """No bars and no log lines of the libraries; whoever imports lengthbench keeps their own settings."""
    import datasets
    import huggingface_hub.utils as hub

    bars = [m for m in (datasets, hub) if not m.are_progress_bars_disabled()]
    level = datasets.logging.get_verbosity()
    for module in bars:
        module.disable_progress_bars()
    datasets.logging.set_verbosity_error()
    try:
        yield
    finally:
        datasets.logging.set_verbosity(level)
        for module in bars:
            module.enable_progress_bars()
