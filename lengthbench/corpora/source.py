"""From what users write after --data to texts.

    novels, novels-train       shipped: two held-out books, and the seven the reference family read
    FILE                       a text file, one document
    FOLDER                     every .txt, .md and .text in it and below, sorted by path, a document each
    FILE.jsonl, .json, .csv, .tsv, .parquet      rows with a text --column
    hub:NAME[/CONFIG][:SPLIT]  through the datasets library

A shipped name wins over a file of that name; `./novels` is the file. Only `hub:` ever asks the network.
"""

from dataclasses import replace
from pathlib import Path

from lengthbench.corpora import files, hub, tables
from lengthbench.corpora.text import Text, Texts, joined
from lengthbench.errors import UserError

NOVELS = Path(__file__).parents[1] / "texts" / "novels"
HELD_OUT = ("austen_prideprejudice", "doyle_sherlock")
JOINS = ("auto", "always", "never")
SHORT = 0.5
"""Rows are joined if less than this share of the bytes stands in rows longer than the longest window."""


def shipped() -> dict[str, str]:
    """Names of the shipped data, and what they are."""
    return {
        "novels": "two held-out novels: Pride and Prejudice (Austen), Sherlock Holmes (Doyle); the default",
        "novels-train": "the seven novels that the reference family was trained on",
    }


def read(
    spec: str,
    *,
    column: str | None = None,
    split: str | None = None,
    join: str = "auto",
    longest: int | None = None,
) -> Texts:
    """The texts that `spec` names, empty ones included. Raises UserError for what is not there or not text.

    `join` auto joins rows, never files, if less than half of the bytes stands in rows longer than `longest`,
    the tokens of the longest window. It takes a byte for a token: enough to tell lines from chapters, and
    known before there is a tokenizer.
    """
    if join not in JOINS:
        raise UserError(f"--join {join}: it is one of {', '.join(JOINS)}")
    found = _open(spec, column, split)
    n = len(found.documents)
    empty = sum(not document.text.strip() for document in found.documents)
    if empty == n:
        raise UserError(f"--data {spec}: there is no text in it (documents: {n:,}, all empty)")
    notes = found.notes
    if empty:
        notes += (f"{spec}: {empty:,} of {n:,} documents are empty",)
    rows = "column" in found.read_as
    joining = join == "always" or (join == "auto" and rows and n > 1 and _short(found.sizes, longest))
    if joining:
        what = "short rows were joined; --join never keeps them apart" if join == "auto" else "documents were joined"
        notes += (f"{spec}: {n:,} {what}",)
    documents = (joined(found.documents),) if joining else found.documents
    counted = {"n_rows": n} if rows else {}
    return replace(found, documents=documents, notes=notes, read_as={**found.read_as, **counted, "joined": joining})


def _open(spec: str, column: str | None, split: str | None) -> Texts:
    if spec.startswith("hub:"):
        return hub.read(spec, column or tables.COLUMN, split)
    if split is not None:
        raise UserError(f"--split {split}: only hub: data sets have splits, '{spec}' has none")
    path = _path(spec)
    if spec in shipped():
        found = Texts(spec, _novels(held_out=spec == "novels"), read_as={"licence": "public domain"})
    elif path is None:
        raise UserError(
            f"--data '{spec}': no such file or folder; it takes {', '.join(shipped())}, a text file, "
            f"a folder, a {', '.join(tables.KINDS)} file, or hub:NAME[/CONFIG][:SPLIT]"
        )
    elif not path.is_dir() and tables.kind(path):
        named = column or tables.COLUMN
        return Texts(spec, tuple(tables.read(path, named)), read_as={"column": named})
    else:
        documents, notes = files.read(path)
        found = Texts(spec, tuple(documents), tuple(notes))
    if column is not None:
        raise UserError(f"--column {column}: only {', '.join(tables.KINDS)} have columns, '{spec}' has none")
    return found


def _novels(held_out: bool) -> tuple[Text, ...]:
    paths = [p for p in sorted(NOVELS.glob("*.txt")) if (p.stem in HELD_OUT) == held_out]
    return tuple(Text(p.stem, files.decode(p, p.read_bytes())) for p in paths)


def _path(spec: str) -> Path | None:
    """The file or folder; None if there is none."""
    try:
        path = Path(spec).expanduser()
        return path if spec.strip() and path.exists() else None
    except (OSError, ValueError, RuntimeError):  # what no file system takes, such as a whole sentence
        return None


def _short(sizes: tuple[int, ...], longest: int | None) -> bool:
    """Whether most of the text stands in rows that the longest window would not fill."""
    return longest is not None and sum(n for n in sizes if n > longest) < SHORT * sum(sizes)
