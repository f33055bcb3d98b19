"""Rows of json, jsonl, csv, tsv and parquet files: one text a row, taken from a named column.

A row without the field, with null or with a number in it is refused and named, never passed over. Blank lines
of jsonl and csv are no rows. Cells are taken as they stand: a csv cell `NA` is the text "NA", an empty one is
empty text.
"""

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from lengthbench.corpora import files
from lengthbench.corpora.text import Text
from lengthbench.errors import UserError

COLUMN = "text"
KINDS = ("jsonl", "ndjson", "json", "csv", "tsv", "parquet")
SHOWN = 5
"""Bad rows named in a message."""
LARGEST_CELL = 1 << 30
"""Bytes; the csv module's own limit, 128 KiB, is less than a chapter."""

Rows = Iterable[tuple[int, Mapping[str, Any]]]


def kind(path: Path) -> str | None:
    """Which of KINDS, by the ending; `.gz` may follow. None: a text file."""
    ending = path.name.lower().removesuffix(".gz").rpartition(".")[2]
    return ending if ending in KINDS else None


def read(path: Path, column: str) -> list[Text]:
    """Every row's text. Raises UserError with the columns there are, or the lines that hold no text."""
    name = kind(path)
    assert name
    by_line = name not in ("json", "parquet")
    found = texts(READERS[name](path, column), column, str(path), "line" if by_line else "row")
    filled = [each.text for each in found if each.text.strip()]
    if name in ("csv", "tsv") and filled and all(map(_is_number, filled)):
        raise UserError(f"--data {path}: column '{column}' holds numbers, not text; name another with --column")
    return found


def texts(rows: Rows, column: str, where: str, unit: str) -> list[Text]:
    """Numbered rows -> texts named by their number; `unit` is what the numbers count."""
    found: list[Text] = []
    bad: list[str] = []
    columns: dict[str, None] = {}
    for number, row in rows:
        columns.update(dict.fromkeys(row))
        if what := _not_text(row, column):
            bad.append(f"{unit} {number} ({what})")
        else:
            found.append(Text(f"{unit} {number}", row[column]))
    if not found and not bad:
        raise UserError(f"--data {where}: there are no rows in it")
    if column not in columns:
        raise no_column(where, column, columns)
    if bad:
        more = f" and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
        raise UserError(
            f"--data {where}: '{column}' is not text in {len(bad):,} of {len(bad) + len(found):,} rows: "
            f"{', '.join(bad[:SHOWN])}{more}; mend or remove them"
        )
    return found


def no_column(where: str, column: str, columns: Iterable[str]) -> UserError:
    have = ", ".join(columns) or "none"
    return UserError(f"--data {where}: no column '{column}'; it has: {have}; name one with --column")


def _not_text(row: Mapping[str, Any], column: str) -> str | None:
    """Why the row has no text, in two words; None if it has."""
    if column not in row:
        return "no field"
    value = row[column]
    if not isinstance(value, str):
        return "null" if value is None else type(value).__name__
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can write half of a pair, "\ud83d"; no UTF-8 exists for it
        return "half a surrogate pair"
    return None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _jsonl(path: Path, _: str) -> Rows:
    for number, line in enumerate(_read(path).split("\n"), 1):
        if line.strip():
            row = _parse(path, line, number)
            if not isinstance(row, dict):
                raise UserError(f"--data {path}: line {number} is no JSON object but a {type(row).__name__}")
            yield number, row


def _json(path: Path, _: str) -> Rows:
    whole = _parse(path, _read(path), 1)
    lists = [v for v in whole.values() if isinstance(v, list)] if isinstance(whole, dict) else [whole]
    if len(lists) != 1 or not isinstance(lists[0], list) or not all(isinstance(r, dict) for r in lists[0]):
        raise UserError(f"--data {path}: it must be a list of objects, or an object with exactly one such list")
    return enumerate(lists[0], 1)


def _parse(path: Path, text: str, first: int) -> Any:
    """`first`: the line of the file that `text` begins in."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        many = error.msg == "Extra data" and error.lineno > 1
        hint = "; a file with one object a line is to be named .jsonl" if many else ""
        place = f"line {first + error.lineno - 1}, column {error.colno}"
        raise UserError(f"--data {path}: {place}: not JSON: {error.msg}{hint}") from None
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 100,000 brackets
        raise UserError(f"--data {path}: line {first}: JSON that cannot be read: {error}") from None


def _csv(path: Path, _: str) -> Rows:
    csv.field_size_limit(LARGEST_CELL)
    delimiter = "\t" if kind(path) == "tsv" else ","
    # strict: without it, a quote that is never closed swallows the rest of the file without a word.
    reader = csv.reader(io.StringIO(_read(path), newline=""), delimiter=delimiter, strict=True)
    first = 1
    try:
        header = next(reader, [])
        twice = next((name for name in header if name and header.count(name) > 1), None)
        if twice:
            raise UserError(f"--data {path}: two columns are called '{twice}'")
        first = reader.line_num + 1
        for cells in reader:
            if len(cells) > len(header):
                raise UserError(f"--data {path}: line {first}: {len(cells)} cells, the header has {len(header)}")
            if cells:
                yield first, dict(zip(header, cells, strict=False))
            first = reader.line_num + 1
    except csv.Error as error:
        raise UserError(f"--data {path}: line {first}: not {kind(path)}: {error}") from None


def _parquet(path: Path, column: str) -> Rows:
    import pyarrow.parquet

    try:
        names = pyarrow.parquet.read_schema(path).names
        values = pyarrow.parquet.read_table(path, columns=[column])[column].to_pylist() if column in names else []
    except Exception as error:  # whatever the library raises for a file that is broken
        raise UserError(f"--data {path}: not parquet: {' '.join(str(error).split())}") from None
    if column not in names:
        raise no_column(str(path), column, names)
    return ((number, {column: value}) for number, value in enumerate(values, 1))


def _read(path: Path) -> str:
    return files.decode(path, files.body(path))


READERS: dict[str, Callable[[Path, str], Rows]] = {
    "jsonl": _jsonl, "ndjson": _jsonl, "json": _json, "csv": _csv, "tsv": _csv, "parquet": _parquet,
}  # fmt: skip
