"""Retrieval tasks: `tasks/needle.toml` is the task called `needle`; a file of one's own is read the same way.

A task is data. Its templates name variables in braces; `[draw]` says how each is drawn, afresh for every trial:

    answer = " {code}"                                      [draw]
    [[evidence]]                                            city = { choice = ["Orvane", "Meltby"] }
    text = " The code for {city} is {code}."                code = { digits = 5 }

Pieces are put behind the end of a sentence, so each brings the white space in front of it along, never behind it.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError

SHIPPED, SOURCE_TREE = Path(__file__).parent / "_tasks", Path(__file__).parents[1] / "tasks"
PLACEHOLDER = re.compile(r"\{([A-Za-z]\w*)(?:\.(\w+))?\}")
"""`{city}`, or `{wording.question}` where `wording` is a choice of tables."""
ROW = ("text", "question", "answer")
"""Variables that a row of `documents` gives."""
AT = ("depth", "spread", "scatter")
GENERATORS = ("digits", "letters", "capitals", "hex", "choice", "parts", "words")
SCORING = ("exact", "contains")
SOURCES = ("prose", "units", "rows")


@dataclass(frozen=True)
class Draw:
    """How a variable gets its value."""

    kind: str
    """digits | letters | capitals | hex: that many characters; choice: one of a list; parts: one of each of several
    lists, joined; words: several of one list, joined."""
    size: int = 1
    """Characters, or words; 1 for the others."""
    lists: tuple[tuple[str | Mapping[str, str], ...], ...] = ()
    """What choice, parts and words draw from."""
    between: str = ""
    """What joins parts and words."""


@dataclass(frozen=True)
class Piece:
    """Something put into the haystack."""

    text: str
    """Template, white space in front included."""
    at: str | float = "depth"
    """depth: where the trial says; spread: the pieces evenly from there to the end; scatter: a seeded place, the same
    at every depth; a number in 0..1: always there."""
    count: int = 1
    """How many, each with variables of its own if more than one. Only context is repeated."""


@dataclass(frozen=True)
class Haystack:
    source: str = "prose"
    """prose: the run's --data; units: drawn from `units`; rows: the other rows of `documents`."""
    units: tuple[str, ...] = ()
    """Templates, drawn at random; for rows, the one template. Never with a value that the evidence has."""
    repeats: int = 0
    """How often the same unit may occur; 0: no limit."""


@dataclass(frozen=True)
class Task:
    name: str
    """File name without `.toml`."""
    description: str
    """One line."""
    version: int
    """Goes up with every change to a prompt."""
    language: str
    """Of the prompt, as in `en`, `ja`."""
    question: str
    """Template of what follows the haystack."""
    answer: str
    """Template. Each variable in it is a sub-answer, scored by itself; the words between are fed, not scored."""
    evidence: tuple[Piece, ...]
    """What the answer needs; the arms `absent` and `decoy` replace it."""
    filler: tuple[str, ...]
    """Sentences in place of the evidence in the arm `absent`; they say nothing of the answer."""
    haystack: Haystack
    draw: Mapping[str, Draw]
    """Variables by name."""
    prefix: str = ""
    """Template of what stands before the haystack."""
    answer_prefix: str = ""
    """Template of the words that lead into the answer; where a chat template is used, the reply begins with it."""
    context: tuple[Piece, ...] = ()
    """Pieces that stay in every arm: other keys, a rule whose exception is the evidence."""
    decoy: tuple[str, ...] = ()
    """Templates, one a piece of evidence, filled with other variables; empty: those of the evidence."""
    wrong: tuple[str, ...] = ()
    """Answer templates that are wrong and tempting; further wrong answers are drawn in the form of the right one."""
    n_wrong: int = 4
    """Wrong answers a trial; chance is 1 / (n_wrong + 1)."""
    scoring: tuple[str, ...] = SCORING
    """Rules for generated text."""
    documents: Path | None = None
    """jsonl, a document a row: `text`; rows with `question` and `answer` (and a list `wrong`) are asked."""
    answer_may_recur: bool = False
    """Whether the answer may also occur in the haystack; else such a trial is redrawn or refused."""


def folder() -> Path:
    """Where the shipped tasks lie: in the installed package, or in the source tree."""
    return SHIPPED if SHIPPED.is_dir() else SOURCE_TREE


def names() -> dict[str, str]:
    """Each shipped task's name and its description."""
    files = {p.name.removesuffix(".toml"): p for p in sorted(folder().glob("*.toml"))}
    return {name: str(tomllib.loads(p.read_text("utf-8")).get("description", "")) for name, p in files.items()}


def read(name_or_path: str | Path) -> Task:
    """The task of that name, or of that file. Raises UserError with the key that is wrong and those there are."""
    name = str(name_or_path)
    path = folder() / f"{name}.toml"
    if not re.fullmatch(r"[\w.-]+", name) or name.endswith(".toml") or not path.is_file():
        path = Path(name).expanduser()
        if path.suffix != ".toml":
            raise UserError(
                f"--task {name}: there is none of that name; there are: {', '.join(names())}, or a file.toml"
            )
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"--task {name}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"--task {name}: not TOML: {error}") from None
    return _task(path, table)


KEYS: dict[str, type] = {
    "description": str, "version": int, "language": str, "prefix": str, "question": str, "answer_prefix": str,
    "answer": str, "evidence": list, "context": list, "decoy": list, "wrong": list, "n_wrong": int, "filler": list,
    "scoring": list, "documents": str, "answer_may_recur": bool, "haystack": dict, "draw": dict,
}  # fmt: skip
REQUIRED = ("description", "version", "language", "question", "answer", "evidence", "filler")
WORDS = {str: "text", int: "a whole number", float: "a number", bool: "true or false", list: "a list", dict: "a table"}


def _task(path: Path, table: dict[str, Any]) -> Task:
    where = f"--task {path.name}"
    _check(where, table, KEYS, REQUIRED)
    own = {k: table[k] for k in KEYS if k in table and KEYS[k] in (str, int, bool)}
    if "documents" in own:
        own["documents"] = path.parent / own["documents"]
        if not own["documents"].is_file():
            raise UserError(f"{where}: documents = '{table['documents']}': no such file beside the task")
    for key in ("filler", "decoy", "wrong", "scoring"):
        if key in table:
            own[key] = _strings(f"{where}: {key}", table[key])
    task = Task(
        name=path.name.removesuffix(".toml"),
        evidence=_pieces(f"{where}: evidence", table["evidence"]),
        context=_pieces(f"{where}: context", table.get("context", []), empty=True),
        haystack=_haystack(f"{where}: haystack", table.get("haystack", {})),
        draw={name: _draw(f"{where}: draw.{name}", value) for name, value in table.get("draw", {}).items()},
        **own,
    )
    _agree(where, task)
    return task


def _agree(where: str, task: Task) -> None:
    """What one key alone cannot show."""
    for rule in task.scoring:
        if rule not in SCORING:
            raise UserError(f"{where}: scoring '{rule}': it is one of {', '.join(SCORING)}")
    if task.version < 1 or task.n_wrong < 1:
        raise UserError(f"{where}: version and n_wrong are 1 or more, not {task.version} and {task.n_wrong}")
    if not task.filler:
        raise UserError(f"{where}: filler: it needs at least one sentence")
    if task.decoy and len(task.decoy) != len(task.evidence):
        raise UserError(f"{where}: decoy has {len(task.decoy)} texts, evidence {len(task.evidence)}; one for each")
    if any(piece.count > 1 for piece in task.evidence):
        raise UserError(f"{where}: evidence: count is for context only; write each piece of evidence as its own entry")
    if (task.haystack.source == "rows") != (task.documents is not None):
        raise UserError(f"{where}: documents and haystack.source = 'rows' go together")
    if (task.haystack.source == "prose") == bool(task.haystack.units):
        raise UserError(f"{where}: haystack.units are needed for units and rows, and only there")
    if not PLACEHOLDER.search(task.answer):
        raise UserError(f"{where}: answer '{task.answer}' holds no variable, so every trial would have the same answer")
    known = [*task.draw, *(ROW if task.documents else ())]
    pieces = [p.text for p in (*task.evidence, *task.context)]
    texts = (task.prefix, task.question, task.answer_prefix, task.answer, *pieces, *task.decoy, *task.wrong)
    for text in (*texts, *task.filler, *task.haystack.units):
        for name, part in PLACEHOLDER.findall(text):
            fields = _fields(task.draw[name]) if name in task.draw else ()
            if name not in known or ((part or fields) and part not in fields):
                what = f"{name}.{part}" if part else name
                have = [f"{n}.{f}" for n in task.draw for f in _fields(task.draw[n])]
                have += [n for n in known if n not in task.draw or not _fields(task.draw[n])]
                raise UserError(f"{where}: no variable {{{what}}} for '{text.strip()}'; there are: {', '.join(have)}")


def _fields(draw: Draw) -> tuple[str, ...]:
    """Names that every table of a choice of tables has."""
    rows = [row for row in draw.lists[0] if isinstance(row, Mapping)] if draw.kind == "choice" else []
    return tuple(k for k in rows[0] if all(k in row for row in rows)) if rows else ()


def _pieces(where: str, entries: list, empty: bool = False) -> tuple[Piece, ...]:
    if not entries and not empty:
        raise UserError(f"{where}: it needs at least one [[evidence]] entry with a text")
    found = []
    for number, entry in enumerate(entries, 1):
        here = f"{where} {number}"
        _check(here, entry, {"text": str, "at": object, "count": int}, ("text",))
        at = entry.get("at", "depth")
        fixed = isinstance(at, int | float) and not isinstance(at, bool)
        if not (0 <= at <= 1 if fixed else at in AT):
            raise UserError(f"{here}: at = {at!r}: it is one of {', '.join(AT)}, or a number in 0..1")
        if entry.get("count", 1) < 1:
            raise UserError(f"{here}: count = {entry['count']}: it is 1 or more")
        found.append(Piece(entry["text"], float(at) if fixed else at, entry.get("count", 1)))
    return tuple(found)


def _haystack(where: str, table: dict[str, Any]) -> Haystack:
    _check(where, table, {"source": str, "units": list, "repeats": int}, ())
    source = table.get("source", "prose")
    if source not in SOURCES:
        raise UserError(f"{where}: source = '{source}': it is one of {', '.join(SOURCES)}")
    return Haystack(source, _strings(f"{where}.units", table.get("units", [])), table.get("repeats", 0))


def _draw(where: str, table: Any) -> Draw:
    known = {k: list if k in ("choice", "parts", "words") else int for k in GENERATORS} | {"between": str, "size": int}
    _check(where, table, known, ())
    kinds = [k for k in GENERATORS if k in table]
    if len(kinds) != 1:
        raise UserError(f"{where}: exactly one of {', '.join(GENERATORS)} says how it is drawn, it has {len(kinds)}")
    kind, value = kinds[0], table[kinds[0]]
    if known[kind] is int:
        if not 1 <= value <= 64:
            raise UserError(f"{where}: {kind} = {value}: a number of characters, 1 to 64")
        return Draw(kind, value)
    lists = value if kind == "parts" else [value]
    if not all(isinstance(one, list) and one for one in lists) or not lists:
        raise UserError(f"{where}: {kind}: it needs a list {'of lists ' if kind == 'parts' else ''}with entries in it")
    for entry in (e for one in lists for e in one):
        tables = kind == "choice" and isinstance(entry, dict) and all(isinstance(v, str) for v in entry.values())
        if not isinstance(entry, str) and not tables:
            raise UserError(f"{where}: {kind}: {entry!r} must be text, or, in a choice, a table of texts")
    size = table.get("size", 3 if kind == "words" else 1)
    if kind == "words" and not 1 <= size <= len(value):
        raise UserError(f"{where}: size = {size}: it draws 1 to {len(value)} of {len(value)} words")
    return Draw(kind, size, tuple(map(tuple, lists)), table.get("between", {"parts": "-", "words": " "}.get(kind, "")))


def _strings(where: str, values: list) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str):
            raise UserError(f"{where}: {value!r} must be text, it is {_named(value)}")
    return tuple(values)


def _check(where: str, table: Any, known: Mapping[str, type], required: Iterable[str]) -> None:
    """A table with no unknown key, none missing and each of its type."""
    if not isinstance(table, dict):
        raise UserError(f"{where}: must be a table, it is {_named(table)}")
    for key, value in table.items():
        if key not in known:
            raise UserError(f"{where}: unknown key '{key}'; the keys are: {', '.join(known)}")
        kind = known[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise UserError(f"{where}: {key} must be {WORDS[kind]}, it is {_named(value)}")
    for key in required:
        if key not in table:
            raise UserError(f"{where}: the key '{key}' is missing")


def _named(value: Any) -> str:
    return (
        f"{WORDS.get(type(value), type(value).__name__)} ({value!r})"
        if not isinstance(value, dict | list)
        else WORDS[type(value)]
    )
