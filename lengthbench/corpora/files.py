"""Text files: strict UTF-8, newlines as they stand (`\\r\\n` too), one document a file.

A byte order mark at the start is the only thing ever left out, and said. A folder is read with all folders
below it, sorted by path; hidden files and folders (`.git`, `._a.txt`) are passed over, those with another
ending are named in a note.
"""

import gzip
import zlib
from pathlib import Path

from lengthbench.corpora.text import Text
from lengthbench.errors import UserError

ENDINGS = (".txt", ".md", ".text")
MARK = b"\xef\xbb\xbf"
SHOWN = 3
"""Files named in a note."""


def read(path: Path) -> tuple[list[Text], list[str]]:
    """Documents of a file or folder, and notes."""
    if not path.is_dir():
        text, notes = _text(path)
        return [Text(path.name, text)], notes
    every = _below(path)
    chosen = [name for name in every if name.lower().endswith(ENDINGS)]
    if not chosen:
        raise UserError(
            f"--data {path}: the folder has no file ending in {', '.join(ENDINGS)}; "
            "name one file, or hub:FOLDER for a folder of json, csv or parquet"
        )
    documents, notes = [], []
    for name in chosen:
        text, more = _text(path / name)
        # A file name need not be UTF-8; what is written to a CSV must be.
        documents.append(Text(name.encode(errors="replace").decode(), text))
        notes += more
    others = [name for name in every if name not in set(chosen)]
    if others:
        shown = ", ".join(others[:SHOWN]) + (", ..." if len(others) > SHOWN else "")
        notes.append(f"{path}: not read, as they end otherwise than {', '.join(ENDINGS)}: {len(others):,} ({shown})")
    return documents, notes


def body(path: Path) -> bytes:
    """The file's bytes, unpacked if it ends in .gz."""
    try:
        packed = path.read_bytes()
        return gzip.decompress(packed) if path.suffix.lower() == ".gz" else packed
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"--data {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def decode(path: Path, body: bytes) -> str:
    """UTF-8 -> text without byte order mark. Raises UserError with the first byte that is not text."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        source = "utf-16" if body.startswith((b"\xff\xfe", b"\xfe\xff")) else "latin1"
        raise _not_text(path, body, error.start, source) from None
    # Half of UTF-16 is valid UTF-8 with a NUL in every other place.
    if "\0" in text:
        raise _not_text(path, body, body.index(0), "utf-16")
    return text.removeprefix("\ufeff")


def _text(path: Path) -> tuple[str, list[str]]:
    found = body(path)
    marked = found.startswith(MARK)
    return decode(path, found), [f"{path}: the byte order mark at its start was left out"] if marked else []


def _below(folder: Path) -> list[str]:
    """Paths of the files in `folder` and below, relative to it, sorted."""
    names = (p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return sorted(n.as_posix() for n in names if not any(part.startswith(".") for part in n.parts))


def _not_text(path: Path, body: bytes, offset: int, source: str) -> UserError:
    line = body.count(b"\n", 0, offset) + 1
    return UserError(
        f"--data {path}: not UTF-8 text: byte {body[offset]:#04x} at offset {offset} in line {line}; "
        f"if it is text, convert it, for example with iconv -f {source} -t utf-8"
    )
