"""Documents and questions of one's own: jsonl, one object a line.

    {"text": "a document, or one clause of it", "question": "...", "answer": "...", "wrong": ["...", "..."]}
    {"text": "a document that is only haystack"}

`wrong` is optional; without it the answers of other rows are the wrong ones. Blank lines are no rows.
"""

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError

FIELDS = ("text", "question", "answer", "wrong")
SHOWN = 5
"""Bad lines named in a message."""


@dataclass(frozen=True)
class Row:
    line: int
    """In the file, from 1."""
    text: str
    question: str | None = None
    answer: str | None = None
    wrong: tuple[str, ...] = ()


@functools.lru_cache(maxsize=8)
def read(path: Path) -> tuple[Row, ...]:
    """Every row. Raises UserError with the lines that are not as described."""
    found, bad = [], []
    for number, row in objects(path, "documents"):
        if why := _wrong_with(row):
            bad.append(f"line {number} ({why})")
        else:
            found.append(Row(number, row["text"], row.get("question"), row.get("answer"), tuple(row.get("wrong", ()))))
    refuse(f"documents {path}", bad, len(found))
    if not any(row.answer for row in found):
        raise UserError(f"documents {path}: no row has a question and an answer, so there is nothing to ask")
    return tuple(found)


def objects(path: Path, what: str):
    """(line number, object) of a jsonl file."""
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{what} {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{what} {path}: line {number}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise UserError(f"{what} {path}: line {number} is no JSON object but a {type(row).__name__}")
        yield number, row


def refuse(where: str, bad: list[str], n_good: int) -> None:
    """Raise for bad lines, and for a file without any."""
    if bad:
        more = f" and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
        total = len(bad) + n_good
        raise UserError(f"{where}: {len(bad):,} of {total:,} rows cannot be used: {', '.join(bad[:SHOWN])}{more}")
    if not n_good:
        raise UserError(f"{where}: there are no rows in it")


def _wrong_with(row: dict[str, Any]) -> str | None:
    unknown = [key for key in row if key not in FIELDS]
    if unknown:
        return f"unknown field '{unknown[0]}'; the fields are: {', '.join(FIELDS)}"
    for key in ("text", "question", "answer"):
        if key in row and not (isinstance(row[key], str) and row[key].strip()):
            return f"'{key}' is not text" if not isinstance(row[key], str) else f"'{key}' is empty"
    if "text" not in row:
        return "no 'text'"
    if ("question" in row) != ("answer" in row):
        return "question and answer go together"
    wrong = row.get("wrong", [])
    if not isinstance(wrong, list) or not all(isinstance(w, str) and w.strip() for w in wrong):
        return "'wrong' is not a list of texts"
    return "the answer is also among 'wrong'" if row.get("answer") in wrong else None
