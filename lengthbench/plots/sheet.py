"""Places for panels in rows under one headline, each with a title and up to two lines of words above it."""

import math
from dataclasses import dataclass

from matplotlib.figure import Figure

from lengthbench.plots import style

WIDTH, TINY, LINE = 8.0, 7.0, 0.125
NAME, TICKS = 0.26, 0.3
"""Inches over a panel for its title, without the words, and under a row for the labels of its ticks."""


@dataclass(frozen=True, eq=False)
class Sheet:
    figure: Figure
    places: list[tuple[float, float]]
    """Left and lower edge of each panel, in inches."""
    lowest: list[bool]
    """Whether a panel has none below it."""
    width: float
    height: float
    """Inches of a panel."""
    bottom: float
    told: list[list[str]]
    """Lines of words over each panel."""
    lines: list[int]
    """How many of them the fullest panel of its row has, so that titles of a row align."""
    room: float
    """Inches that a title and words may take, from the panel's left edge."""

    def name(self, index: int, title: str, color: str) -> None:
        """The panel's title in its colour and its words in grey."""
        x, y = self.places[index]
        top = y + self.height + 0.06 + LINE * self.lines[index]
        for i, words in enumerate(self.told[index]):
            style.write(self.figure, x, top - LINE * (i + 1), words, fontsize=TINY, color=style.GREY)
        if title:
            title = style.squeeze(title, self.room, style.BODY)
            style.write(self.figure, x, top + 0.02, title, color=color, weight="bold")


def columns(n_panels: int, n_models: int, most: int = 3) -> int:
    """Panels in a row: a model's own, where each model has equally many and not too many; else up to three."""
    own = n_panels // n_models
    if n_models > 1 and own > 1 and own * n_models == n_panels:
        fitting = [k for k in range(most, 1, -1) if own % k == 0]
        if fitting:
            return fitting[0]
    return min(2 if n_panels in (2, 4) else 3, n_panels)


def width(columns: int, left: float, gap: float, right: float) -> float:
    """Inches of a panel, of `columns` in a row."""
    return (WIDTH - left - right - gap * (columns - 1)) / columns


def build(
    words: list[str],
    columns: int,
    height: float,
    foot: float,
    above: float,
    *,
    left: float,
    gap: float,
    right: float,
    past: float = 0.0,
) -> Sheet:
    """A place for each of `words`, which stand over the panels; `foot` and `above` are inches kept free for others.

    Titles and words may reach `past` the right edge of their panel, into the gap.
    """
    columns = min(columns, len(words))
    wide, rows = width(columns, left, gap, right), math.ceil(len(words) / columns)
    told = [wrap(w, wide + past, TINY, 2) for w in words]
    in_row = [max(len(lines) for lines in told[i : i + columns]) for i in range(0, len(words), columns)]
    lines = [in_row[i // columns] for i in range(len(words))]
    head = NAME + LINE * max(lines)
    bottom, pitch = 0.52 + foot, head + height + TICKS
    figure = style.new_figure(WIDTH, bottom + rows * pitch - TICKS + 0.62 + above)
    places = [
        (left + (i % columns) * (wide + gap), bottom + (rows - 1 - i // columns) * pitch) for i in range(len(words))
    ]
    lowest = [i + columns >= len(words) for i in range(len(words))]
    return Sheet(figure, places, lowest, wide, height, bottom, told, lines, wide + past)


def wrap(words: str, width: float, size: float, most: int) -> list[str]:
    """`words` in at most `most` lines of `width` inches; the last is shortened. A line break starts a new one."""
    if "\n" in words:
        parts = [wrap(part, width, size, 1) for part in words.split("\n", most - 1)]
        return [line for part in parts for line in part]
    lines: list[str] = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and (len(lines) == most or style.extent(longer, size)[0] <= width):
            lines[-1] = longer
        else:
            lines.append(word)
    return [style.fit(line, width, size) for line in lines]
