"""How every figure looks: colours, type, numbers and the mark of the training length.

Colours are Okabe and Ito's (jfly.uni-koeln.de/color), told apart by people who confuse red and green. Grey print
tells them apart by marker and lightness. A scheme keeps its colour in every figure and every run.
"""

import functools
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib.style
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

DPI = 160
BODY, SMALL, TITLE = 9.0, 8.0, 12.0
INK, GREY, MUTED, FAINT = "#1a1a1a", "#5f5f5f", "#c9c9c9", "#e6e6e6"
EARLY = "#E69F00"
DASHES = {"nonoverlapping": "-", "sliding": (0, (4, 1.8)), "hf": (0, (1.2, 1.4))}
WIDE = ("Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Source Han Sans", "WenQuanYi Zen Hei")
"""Asked for the characters DejaVu Sans lacks, where they are installed."""


@dataclass(frozen=True)
class Ink:
    color: str
    marker: str


SCHEMES = {
    "none": Ink("#000000", "o"),
    "learned": Ink("#009E73", "D"),
    "sinusoidal": Ink("#E69F00", "s"),
    "rope": Ink("#D55E00", "^"),
    "t5": Ink("#56B4E9", "v"),
    "alibi": Ink("#0072B2", "o"),
}
OTHERS = (Ink("#CC79A7", "P"), Ink("#6B4C9A", "X"), Ink("#8C564B", "h"), Ink("#7A8B00", "p"))
OTHERS += tuple(Ink(ink.color, marker) for ink, marker in zip(SCHEMES.values(), "P<>dXp", strict=True))


@contextmanager
def look() -> Iterator[None]:
    """Within it matplotlib's defaults and ours hold, whatever the user's matplotlibrc says."""
    ours = {
        "font.family": _families(),
        "font.size": BODY,
        # A model may be called `cost$5$`: names are text, never formulas.
        "text.parse_math": False,
        "text.color": INK,
        "axes.edgecolor": "#8a8a8a",
        "axes.linewidth": 0.7,
        "axes.labelcolor": GREY,
        "svg.hashsalt": "lengthbench",
    }
    with matplotlib.style.context(["default", ours]), warnings.catch_warnings():
        # A letter that no installed font has is drawn as a box; a warning would tell the user no more.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


@functools.lru_cache(maxsize=1)
def _families() -> list[str]:
    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in WIDE if name in installed)]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of `width` x `height` inches with a canvas of its own."""
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def axes_at(figure: Figure, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at a place given in inches: two spines, faint horizontal lines."""
    across, up = figure.get_size_inches()
    axes = figure.add_axes((left / across, bottom / up, width / across, height / up))
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, axis="y", which="major", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", color="#8a8a8a", labelcolor=GREY, labelsize=SMALL, length=3, width=0.7)
    axes.tick_params(which="minor", length=2)
    return axes


def write(figure: Figure, x: float, y: float, words: str, **style) -> Text:
    """Text at a place given in inches from the lower left corner of the figure."""
    return figure.text(x, y, words, transform=figure.dpi_scale_trans, **{"fontsize": BODY, **style})


def stroke(figure: Figure, xs: Sequence[float], ys: Sequence[float], **style) -> Line2D:
    """A line through places given in inches."""
    line = Line2D(xs, ys, transform=figure.dpi_scale_trans, **style)
    figure.add_artist(line)
    return line


def headline(figure: Figure, title: str, subtitle: str) -> None:
    """The title, a plain sentence, and under it in grey what it rests on."""
    width, height = figure.get_size_inches()
    title = fit(title, width - 0.28, TITLE, "bold")
    write(figure, 0.14, height - 0.13, title, fontsize=TITLE, va="top", weight="bold")
    write(figure, 0.14, height - 0.4, fit(subtitle, width - 0.28, SMALL), fontsize=SMALL, va="top", color=GREY)


@functools.lru_cache(maxsize=4096)
def extent(words: str, size: float, weight: str = "normal") -> tuple[float, float]:
    """Width and height of a line of text, in inches."""
    with look():
        figure = new_figure(1, 1)
        box = figure.text(0, 0, words, fontsize=size, weight=weight).get_window_extent()
    return box.width / DPI, box.height / DPI


def fit(words: str, width: float, size: float, weight: str = "normal") -> str:
    """`words`, shortened at the end to `width` inches."""
    if extent(words, size, weight)[0] <= width:
        return words
    while words and extent(words + "…", size, weight)[0] > width:
        words = words[:-1]
    return words.rstrip() + "…"


def shorten(name: str, most: int = 30) -> str:
    """One line of at most `most` characters; what tells names apart stands at both ends, so the middle goes."""
    name = " ".join("".join(c if c.isprintable() else " " for c in name).split())
    keep = most - 1
    return name if len(name) <= most else f"{name[: keep - keep // 2]}…{name[len(name) - keep // 2 :]}"


def squeeze(name: str, width: float, size: float) -> str:
    """`name` in bold within `width` inches, shortened in the middle."""
    most = len(name)
    while most > 3 and extent(shorten(name, most), size, "bold")[0] > width:
        most -= 1
    return shorten(name, most)


def number(value: float) -> str:
    """A value as it stands in a sentence: 3.92, 41.3, 1,528, 2.4e12."""
    if math.isinf(value):
        return "infinite"
    if abs(value) >= 1e7:
        return power(value, 1)
    return f"{value:,.{0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2}f}"


def power(value: float, decimals: int) -> str:
    """2.4e12, for what has too many digits to be read."""
    head, _, exponent = f"{value:.{decimals}e}".partition("e")
    return f"{head}e{int(exponent)}"


def ink(color: str) -> str:
    """The colour for words: darkened until it reads on white (contrast 4.5, WCAG 2.1 section 1.4.3)."""
    rgb = np.array(to_rgb(color))
    while _contrast(rgb) < 4.5:
        rgb = rgb * 0.94
    red, green, blue = (float(c) for c in rgb)
    return to_hex((red, green, blue))


def _contrast(rgb: np.ndarray) -> float:
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return 1.05 / (float(linear @ np.array([0.2126, 0.7152, 0.0722])) + 0.05)
