"""A run folder read for the page: its manifest, its tables as they stand, and the files of its figures.

Cells stay the text of the file, so that the page can show the exact value. A table that was cut short or edited into
something that is no table is refused; a run that was interrupted is marked, since its finished rows are true.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.probes import attribution_tables, context_tables, needle_tables, perplexity_tables
from lengthbench.run.folder import read_manifest

PROBES = (perplexity_tables, attribution_tables, context_tables, needle_tables)
SCHEMAS = {s.name: s for m in PROBES for s in m.SCHEMAS}
SINGLE = ("trials", "answers")
"""Tables of single trials: too long for a page."""
NEEDED = {
    name: (*schema.key, "status") if "status" in schema.values else schema.key
    for name, schema in SCHEMAS.items()
    if name not in SINGLE
}
"""Table -> the columns without which it cannot be read."""
NEEDED |= {"speed": ("model", "status")}
MAIN = {"ppl": "ppl", "attribute": "attribution", "context": "context", "needle": "needle"}
"""Command -> the table whose rows its manifest counts."""

Row = dict[str, str]


@dataclass(frozen=True, eq=False)
class Run:
    path: Path
    name: str
    """As the page calls it: the folder, with more of its path where two agree."""
    manifest: dict[str, Any]
    tables: dict[str, list[Row]]
    """Rows by table; a table that the folder lacks, or that has no row, is not in it."""

    @property
    def mark(self) -> str:
        """What a reader must know before anything else; empty for a run that is complete."""
        status = self.manifest["status"]
        return "" if status == "complete" else f"unfinished ({status}): only the cells that were finished are shown"

    @property
    def models(self) -> list[dict[str, Any]]:
        found = self.manifest.get("models")
        return [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []

    @property
    def facts(self) -> dict[str, Any]:
        """What the manifest says of the text."""
        found = self.manifest.get("data")
        return found if isinstance(found, dict) else {}

    def rows(self, *names: str) -> Iterator[Row]:
        for name in names or tuple(self.tables):
            yield from self.tables.get(name, ())

    def figures(self) -> dict[str, list[Path]]:
        """Name of a figure -> its files."""
        found: dict[str, list[Path]] = {}
        for path in sorted((self.path / "plots").glob("*")):
            if path.suffix in (".png", ".svg") and path.is_file():
                found.setdefault(path.stem, []).append(path)
        return found


def read(folders: Sequence[str]) -> list[Run]:
    """The runs in the order given, each once. Raises UserError for one that cannot be shown."""
    paths = list({Path(f).expanduser().resolve(): Path(f).expanduser() for f in folders}.values())
    return [_read(path, name) for path, name in zip(paths, _names(paths), strict=True)]


def subject(row: Row) -> str:
    """The model of a row, with its scheme where the name does not say it."""
    model, scheme = row.get("model", ""), row.get("scheme", "")
    words = " ".join(filter(None, (scheme, row.get("scheme_params", ""))))
    return model if scheme in model else f"{model} [{words}]"


def _names(paths: Sequence[Path]) -> list[str]:
    whole = [path.resolve() for path in paths]
    for n in range(1, max(len(path.parts) for path in whole)):
        names = ["/".join(path.parts[-n:]) for path in whole]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in whole]


def _read(path: Path, name: str) -> Run:
    manifest = read_manifest(path)
    tables = {name: rows for name, needed in NEEDED.items() if (rows := _table(path / f"{name}.csv", needed))}
    if not tables:
        way = "go on with it by --resume" if manifest["status"] != "complete" else "measure again"
        raise UserError(f"{path}: status {manifest['status']}, and no table has a row; {way}")
    _check_count(path, manifest, tables)
    return Run(path, name, manifest, tables)


def _table(path: Path, needed: Sequence[str]) -> list[Row]:
    """Rows of the file; none where there is no such file."""
    try:
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        return []
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is damaged: byte {error.start} is no UTF-8; measure again") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if not text.endswith("\n"):
        raise UserError(f"{path} is damaged: its last line was cut short; measure again")
    try:
        header, *lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    except (csv.Error, ValueError) as error:
        raise UserError(f"{path} is damaged: {error}; measure again") from None
    if lacking := [column for column in needed if column not in header]:
        raise UserError(f"{path} is damaged: it has no column {', '.join(lacking)}; measure again")
    for number, cells in enumerate(lines, 2):
        if len(cells) != len(header):
            raise UserError(f"{path} is damaged: row {number} has {len(cells)} of {len(header)} cells; measure again")
    rows = [dict(zip(header, cells, strict=True)) for cells in lines]
    for number, row in enumerate(rows, 2):
        if "length" in needed and not row["length"].isdecimal():
            raise UserError(f"{path} is damaged: row {number}: length '{row['length']}' is no number; measure again")
    return rows


def _check_count(path: Path, manifest: dict[str, Any], tables: dict[str, list[Row]]) -> None:
    """A table that lost whole lines is still a table; only the manifest knows how many there were."""
    table = MAIN.get(str(manifest.get("command")))
    counts = manifest.get("rows_per_status")
    if table is None or not isinstance(counts, dict):
        return
    wanted, there = sum(n for n in counts.values() if isinstance(n, int)), len(tables.get(table, ()))
    if wanted != there:
        raise UserError(f"{path / table}.csv is damaged: it has {there} of the {wanted} rows counted in the manifest")
