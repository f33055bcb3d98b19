"""A map of cells: a row a position, a column a length, the value printed on its shade.

hatched      not surely more than nothing
grey, words  no number, and why; neighbours with the same reason share one block
black line   the training length, between the last column within it and the first beyond
"""

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

from lengthbench.plots import style
from lengthbench.plots.search import Search
from lengthbench.plots.shade import Shade, on

FAILED = "#ececec"
WHY = {
    "unsupported": "not supported",
    "oom": "out of memory",
    "nonfinite": "not finite",
    "too_short": "text too short",
    "error": "failed",
}
SIZES = (9.0, 8.0, 7.0, 6.0)
COUNT = 5.5
"""Points of the number of trials."""


@dataclass(frozen=True)
class Block:
    """Neighbouring cells that failed alike: rows top..bottom and columns left..right, all included."""

    top: int
    bottom: int
    left: int
    right: int
    status: str


@dataclass(frozen=True)
class Fit:
    """How the words of the cells are set, the same in every map of a figure."""

    size: float | None
    """Points of the values; None where cells have no room."""
    unit: bool
    counts: bool
    """Whether the number of trials stands under the value."""


def fit(cells: list[str], units: list[str], counts: list[str], width: float, height: float) -> Fit:
    """The largest type in which all of the words fit into cells of `width` x `height` inches."""
    for size in SIZES:
        for unit, words in ((True, units), (False, cells)):
            wide = max((style.extent(w, size)[0] for w in words), default=0.0)
            high = style.extent("0%", size)[1]
            if wide + 0.06 <= width and high + 0.04 <= height:
                small = max((style.extent(w, COUNT)[0] for w in counts), default=0.0)
                room = small + 0.05 <= width and high + style.extent("0", COUNT)[1] + 0.1 <= height
                return Fit(size, unit, room)
    return Fit(None, False, False)


def plot(axes: Axes, search: Search, shade: Shade, how: Fit, width: float, height: float) -> None:
    """The map in axes of `width` x `height` inches, the start of the input at the top."""
    values, plain, trials = search.numbers(shade.column), shade.plain(search), search.numbers("n_trials")
    n_rows, n_columns = values.shape
    axes.grid(False)
    axes.spines[:].set_visible(False)
    axes.set(xlim=(-0.5, n_columns - 0.5), ylim=(n_rows - 0.5, -0.5))
    for row, column in np.argwhere(np.isfinite(values)):
        value, color = float(values[row, column]), shade.color(float(values[row, column]))
        _rectangle(axes, row, column, facecolor=color, edgecolor="white", linewidth=1.0, label="cell")
        hatched = bool(plain[row, column])
        if hatched:
            # The hatch takes the colour of the edge, which is not drawn.
            _rectangle(axes, row, column, fill=False, hatch="////", edgecolor="#9c9c9c", linewidth=0, label="hatched")
        if how.size is not None:
            count = float(trials[row, column]) if how.counts else math.nan
            _words(axes, row, column, shade.words(value, how.unit), count, color, how.size, hatched, height / n_rows)
    for block in blocks(search.status):
        _fail(axes, block, width / n_columns, height / n_rows)
    edge = trained_at(search)
    if edge is not None:
        axes.plot([edge, edge], [-0.5, n_rows - 0.5], color=style.INK, linewidth=2.2, clip_on=False, label="trained")


def _rectangle(axes: Axes, row: int, column: int, **look) -> None:
    axes.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **look))


def _words(axes, row, column, words: str, count: float, color: str, size: float, hatched: bool, height: float) -> None:
    """The value, and the number of trials below it; on a hatched cell behind them its plain colour."""
    counted = math.isfinite(count)
    value, small = style.extent("0%", size)[1], style.extent("0", COUNT)[1]
    total = value + (small + 0.045 if counted else 0)
    ground = {"bbox": {"facecolor": color, "edgecolor": "none", "pad": 1.0}} if hatched else {}
    center = {"ha": "center", "va": "center_baseline", "color": on(color), **ground}
    y = row - (total - value) / 2 / height
    axes.text(column, y, words, fontsize=size, zorder=4, **center)
    if counted:
        at = row + (total - small) / 2 / height
        axes.text(column, at, f"n={count:.0f}", fontsize=COUNT, zorder=3, **center)


def blocks(status: np.ndarray) -> list[Block]:
    """Rectangles of cells (P, L) that failed alike: runs down a column, joined over neighbouring columns."""
    found: list[Block] = []
    for column in range(status.shape[1]):
        row = 0
        while row < len(status):
            word, start = str(status[row, column]), row
            while row < len(status) and str(status[row, column]) == word:
                row += 1
            if word in ("", "ok"):
                continue
            left = next((b for b in found if (b.top, b.bottom, b.status) == (start, row - 1, word)
                         and b.right == column - 1), None)  # fmt: skip
            if left:
                found.remove(left)
            found.append(Block(start, row - 1, left.left if left else column, column, word))
    return found


def _fail(axes: Axes, block: Block, width: float, height: float) -> None:
    """One grey block with its reason, upright where it is narrow; a cross where no words fit."""
    wide, high = block.right - block.left + 1, block.bottom - block.top + 1
    corner = (block.left - 0.5, block.top - 0.5)
    axes.add_patch(Rectangle(corner, wide, high, facecolor=FAILED, edgecolor="white", linewidth=1.0, label="failed"))
    words, turn = reason(WHY.get(block.status, block.status), wide * width - 0.08, high * height - 0.06)
    at = {"ha": "center", "va": "center", "rotation": turn, "rotation_mode": "anchor"}
    x, y = (block.left + block.right) / 2, (block.top + block.bottom) / 2
    ground = {"facecolor": FAILED, "edgecolor": "none", "pad": 1.0}
    axes.text(x, y, words, fontsize=7.0, color=style.GREY, linespacing=1.05, zorder=4, bbox=ground, **at)


def reason(words: str, width: float, height: float) -> tuple[str, int]:
    """The words as they fit, on one line or two, level or upright, and their angle; else a cross."""
    first, _, rest = words.rpartition(" ")
    for told in (words, f"{first}\n{rest}" if first else words):
        sizes = [style.extent(line, 7.0) for line in told.split("\n")]
        wide, high = max(w for w, _ in sizes), sum(h for _, h in sizes) * 1.25
        if wide <= width and high <= height:
            return told, 0
        if wide <= height and high <= width:
            return told, 90
    return "×", 0


def trained_at(search: Search) -> float | None:
    """Where the line of the training length stands, in columns; None where it lies outside the lengths."""
    trained, lengths = search.line.train_length, search.lengths
    if not trained or not lengths[0] <= trained <= lengths[-1]:
        return None
    return float((lengths <= trained).sum()) - 0.5


def axis(axes: Axes, search: Search, width: float, height: float, named: tuple[bool, bool]) -> None:
    """Lengths under the map and positions beside it, as many as there is room for; `named` (x, y) or ticks alone."""
    lengths, positions = [f"{n:.0f}" for n in search.lengths], list(search.positions)
    wide = max(style.extent(n, style.SMALL)[0] for n in lengths) + 0.08
    high = style.extent("0", style.SMALL)[1] + 0.04
    across, down = _every(len(lengths), width, wide, True), _every(len(positions), height, high, False)
    for at, shown, words in ((axes.xaxis, across, lengths), (axes.yaxis, down, positions)):
        at.set_major_locator(FixedLocator(shown))
        at.set_major_formatter(FuncFormatter(lambda x, _, words=words: words[round(x)]))
        at.set_minor_formatter(NullFormatter())
    axes.tick_params(length=0, pad=3, labelbottom=named[0], labelleft=named[1])


def _every(n: int, room: float, least: float, keep_last: bool) -> list[int]:
    """Which of `n` labels to show so that each has `least` inches: all, or every second, third ..."""
    step = math.ceil(least * n / room)
    return list(range((n - 1) % step if keep_last else 0, n, step))
