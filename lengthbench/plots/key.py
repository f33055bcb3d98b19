"""The key over a column of panels: a heading, and under it a sample and its meaning to a line."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lengthbench.plots import bars, fan, style

ROW, TINY = 0.15, 7.0


def height(n_rows: int) -> float:
    """Inches of a heading and its lines."""
    return 0.24 + ROW * n_rows


def write(figure: Figure, left: float, top: float, heading: str, rows: Sequence[tuple[str, str]]) -> None:
    """`rows` are pairs of what is drawn (a part, `total`, or a line of the fan) and its meaning."""
    style.write(figure, left, top, heading, fontsize=style.SMALL, weight="bold", va="top")
    for i, (name, words) in enumerate(rows):
        y = top - 0.27 - ROW * i
        _sample(figure, name, left, y)
        style.write(figure, left + 0.28, y, words, fontsize=TINY, va="center_baseline")


def _sample(figure: Figure, name: str, left: float, y: float) -> None:
    if name in bars.LOWER:
        edge = {"edgecolor": "#8a8a8a", "linewidth": 0.4, "hatch": bars.HATCH[name]} if name in bars.HATCH else {}
        patch = Rectangle((left, y - 0.045), 0.2, 0.09, facecolor=bars.LOWER[name], **edge)
        figure.add_artist(patch).set_transform(figure.dpi_scale_trans)
    elif name == "total":
        style.stroke(figure, [left + 0.1] * 2, [y - 0.06, y + 0.06], color=style.INK, linewidth=0.9)
        look = {"color": "white", "marker": "D", "markersize": 4, "markeredgecolor": style.INK, "linewidth": 0}
        style.stroke(figure, [left + 0.1], [y], **look)
    else:
        style.stroke(figure, [left, left + 0.22], [y, y], **fan.LINES[name])
