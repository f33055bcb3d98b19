"""The figures of the runs, inside the page: of .png and .svg the smaller one, as a data: URI in an <img>.

An image cannot run scripts or load anything, whatever stands in its file.
"""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lengthbench.errors import UserError
from lengthbench.report.alt import alt
from lengthbench.report.runs import Run

SECTIONS = {
    "attribution": ("Attribution", ("attribution",)),
    "sweep": ("Sweep", ("perplexity", "positions")),
    "ladder": ("Context ladder", ("ladder",)),
    "retrieval": ("Retrieval", ("retrieval", "retrieval_positions", "retrieval_gain", "contrast")),
}
"""Part of the page -> its title and its figures, in their order; others follow under their own names."""
ROOM = 2_000_000
"""Bytes of the page that figures may take; what does not fit is named instead."""
KINDS = {".png": "image/png", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Figure:
    name: str
    run: str
    src: str
    """Empty where there was no room."""
    alt: str
    file: str


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    rows: list[list[Figure]]
    """A row holds the same figure of every run, side by side."""


def sections(runs: Sequence[Run]) -> list[Section]:
    """The parts of the page that have a figure."""
    files = {run.name: run.figures() for run in runs}
    known = {name for _, names in SECTIONS.values() for name in names}
    others = sorted({name for found in files.values() for name in found} - known)
    room, made = ROOM, []
    for part, (title, names) in {**SECTIONS, "more": ("More figures", tuple(others))}.items():
        rows = []
        for name in names:
            row = []
            for run in runs:
                if paths := files[run.name].get(name):
                    figure = _figure(name, run, paths, room)
                    room -= len(figure.src)
                    row.append(figure)
            rows += [row] if row else []
        made += [Section(part, title, rows)] if rows else []
    return made


def _figure(name: str, run: Run, paths: Sequence[Path], room: int) -> Figure:
    try:
        path = min(paths, key=lambda p: p.stat().st_size)
        content = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise UserError(f"{paths[0]}: cannot be read: {error.strerror}") from None
    src = f"data:{KINDS[path.suffix]};base64,{content}"
    return Figure(name, run.name, src if len(src) <= room else "", alt(name, run), f"plots/{path.name}")
