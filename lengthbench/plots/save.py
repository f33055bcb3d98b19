"""Writes a figure as .png and .svg: equal figures give equal files.

Dates and the library's name stay out, and the SVG's identifiers come from a fixed salt instead of a random one.
"""

import io
from contextlib import suppress
from pathlib import Path

from matplotlib.figure import Figure

from lengthbench.errors import UserError
from lengthbench.plots import style

METADATA = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}


def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write `folder/name.png` and `folder/name.svg`, making the folder; a reader never sees half a file."""
    return [_write(folder / f"{name}.{kind}", _bytes(figure, kind)) for kind in METADATA]


def _bytes(figure: Figure, kind: str) -> bytes:
    out = io.BytesIO()
    with style.look():
        figure.savefig(out, format=kind, dpi=style.DPI, metadata=METADATA[kind])
    return out.getvalue()


def _write(path: Path, content: bytes) -> Path:
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise UserError(f"cannot write {path}: {error.strerror}; make room or give another --out") from None
    return path
