"""Names of lines: beside their right ends, above the edge where they leave the view, or near a point inside."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from lengthbench.plots import labels, style
from lengthbench.plots.frame import Frame
from lengthbench.plots.labels import Box
from lengthbench.plots.notes import Exit
from lengthbench.plots.series import Series

ROW = 0.17


def place_exits(exits: Sequence[Exit], xs: Sequence[float], right: float) -> list[tuple[float, int]]:
    """Left edge and row of the words above each exit, whose arrows stand at `xs` inches."""
    widths = [style.extent(found.words, style.SMALL)[0] + 0.12 for found in exits]
    return labels.pack(xs, widths, right, 0.1)


def name_exits(figure: Figure, frame: Frame, lines: Sequence[Series], exits: Sequence[Exit], spots) -> None:
    """An arrow at the top edge for each line that leaves there, and above it the values it reaches."""
    edge = frame.bottom + frame.height
    for line, found, (left, row) in zip(lines, exits, spots, strict=True):
        x, foot = frame.x(found.length), edge + 0.15 + ROW * row
        style.stroke(figure, [x, x], [edge, foot + 0.02], color=line.ink.color, linewidth=0.7)
        style.stroke(figure, [x], [edge + 0.06], color=line.ink.color, marker="^", markersize=4.5, linewidth=0)
        text = style.write(figure, left + 0.05, foot, found.words, fontsize=style.SMALL, va="bottom")
        text.set(color=style.ink(line.ink.color), bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.5})


def name_ends(figure: Figure, frame: Frame, lines: Sequence[Series]) -> None:
    """Names to the right of the axes, at the heights where the lines end or near them."""
    last = [int(np.flatnonzero(np.isfinite(line.column(frame.y.column)))[-1]) for line in lines]
    points = [frame.at(line.lengths[i], line.column(frame.y.column)[i]) for line, i in zip(lines, last, strict=True)]
    gap = style.extent("Ag", style.BODY)[1] + 0.035
    low, high = frame.bottom + gap / 2, frame.bottom + frame.height - gap / 2
    right = frame.left + frame.width
    for line, (x, y), at in zip(lines, points, labels.spread([y for _, y in points], gap, low, high), strict=True):
        color = line.ink.color
        style.stroke(figure, [x + 0.05, right + 0.06, right + 0.22], [y, y, at], color=color, linewidth=0.6, alpha=0.7)
        style.write(figure, right + 0.26, at, line.name, color=style.ink(color), va="center_baseline")


def put(figure, frame: Frame, words: str, point, points: np.ndarray, taken: Sequence[Box], color: str) -> Box:
    """Words inside the axes, clear of the `points` (n, 2) of all lines and of other words, and near a point if so."""
    wide, high = style.extent(words, style.SMALL)
    found, lowest = Box(frame.left, frame.bottom, frame.left + wide, frame.bottom + high), math.inf
    for left in np.arange(frame.left + 0.06, frame.left + frame.width - wide, 0.06):
        for low in np.arange(frame.bottom + 0.05, frame.bottom + frame.height - high - 0.03, 0.06):
            box = Box(left - 0.03, low - 0.03, left + wide + 0.03, low + high + 0.03)
            away = math.hypot(left + wide / 2 - point[0], low + high / 2 - point[1])
            cost = 10 * box.count(points) + 1000 * sum(box.overlaps(other) for other in taken) + 4 * away
            if cost < lowest:
                found, lowest = Box(left, low, left + wide, low + high), cost
    style.write(figure, found.left, found.bottom, words, fontsize=style.SMALL, color=color, va="bottom")
    return found


def lead(figure: Figure, point: tuple[float, float], box: Box, color: str) -> None:
    """A thin line from a point to the words about it."""
    x = min(max(point[0], box.left), box.right)
    y = box.top + 0.02 if box.top < point[1] else box.bottom - 0.02
    style.stroke(figure, [point[0], x], [point[1], y], color=color, linewidth=0.6, alpha=0.7)


def samples(frame: Frame, lines: Sequence[Series]) -> np.ndarray:
    """Points (n, 2) along the finite parts of all lines, in inches, so close that no label slips between them."""
    points: list[tuple[float, float]] = []
    top = frame.bottom + 2 * frame.height
    for line in lines:
        rows = [frame.at(n, v) for n, v in zip(line.lengths, line.column(frame.y.column), strict=True)]
        known = [(x, y) for x, y in rows if math.isfinite(y)]
        for (x0, y0), (x1, y1) in zip(known, known[1:] or known, strict=False):
            y0, y1 = min(y0, top), min(y1, top)
            steps = np.linspace(0, 1, 2 + int(math.hypot(x1 - x0, y1 - y0) / 0.03))
            points += zip(x0 + (x1 - x0) * steps, y0 + (y1 - y0) * steps, strict=True)
    return np.array(points, np.float64).reshape(-1, 2)
