"""Small multiples: equal panels in rows under one headline, each with a title and a line of words."""

import math
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lengthbench.plots import style

WIDTH, LEFT, RIGHT, GAP, TINY = 8.0, 0.62, 0.2, 0.28, 7.0
BETWEEN = 0.62
"""Inches between two rows: tick labels of the upper, title and words of the lower."""


@dataclass(frozen=True, eq=False)
class Grid:
    figure: Figure
    panels: list[Axes]
    lowest: list[bool]
    """Whether a panel has none below it, so that its x ticks carry labels."""
    width: float
    """Inches of a panel."""
    left: float
    bottom: float
    right: float
    top: float
    """Edges of all panels together, in inches."""

    def name(self, index: int, title: str, words: str, color: str) -> None:
        """The panel's title, and under it its words in grey."""
        box = self.panels[index].get_position()
        across, up = self.figure.get_size_inches()
        x, y = box.x0 * across, box.y1 * up
        title = style.squeeze(title, self.width, style.BODY)
        style.write(self.figure, x, y + 0.19, title, color=color, weight="bold")
        style.write(self.figure, x, y + 0.06, style.fit(words, self.width, TINY), fontsize=TINY, color=style.GREY)


OWN_GAP = 0.56
"""Inches between columns where every panel has a scale, and so tick labels, of its own."""


def build(n: int, columns: int, height: float, foot: float, above: float = 0.0, own_scales: bool = False) -> Grid:
    """`n` panels `height` inches high in `columns`; `foot` and `above` are inches kept free for words."""
    gap = OWN_GAP if own_scales else GAP
    columns = min(columns, n)
    rows = math.ceil(n / columns)
    width = (WIDTH - LEFT - RIGHT - gap * (columns - 1)) / columns
    bottom = 0.52 + foot
    top = bottom + rows * height + (rows - 1) * BETWEEN
    figure = style.new_figure(WIDTH, top + 1.0 + above)
    panels = []
    for i in range(n):
        row, column = divmod(i, columns)
        at = top - height - row * (height + BETWEEN)
        panels.append(style.axes_at(figure, LEFT + column * (width + gap), at, width, height))
        if column and not own_scales:
            panels[-1].tick_params(labelleft=False)
    lowest = [i + columns >= n for i in range(n)]
    return Grid(figure, panels, lowest, width, LEFT, bottom, WIDTH - RIGHT, top)
