"""How often a fact is found at the start, in the middle and at the end, against length; from needle.csv.

A panel a model and task, a line a position with its Wilson interval; lines that agree lie side by side, the wider
below. Two thin grey lines are the controls: the question without the evidence, and with the evidence alone.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter

from lengthbench.plots import caption, labels, maps, reach, sheet, style, ticks
from lengthbench.plots.search import Search, read
from lengthbench.plots.sheet import Sheet

ABOUT = "How often the fact is found"
LEFT, GAP, RIGHT, HEIGHT, ALONE, ROW = 0.72, 0.62, 0.62, 1.15, 2.4, 0.17
ASIDE = 0.035
"""Inches between the lines of neighbouring positions, which else would lie on each other."""
MARKERS = "^os"
CONTROLS = {
    "absent_exact_rate": ((0, (1, 1.5)), "without the evidence"),
    "oracle_exact_rate": ((0, (5, 2)), "evidence and question alone"),
}


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The figure of `tables["needle"]`; never fails for want of numbers."""
    with style.look():
        searches = read(tables.get("needle"))
        shown = [search for search in searches if np.isfinite(search.numbers("exact_rate")).any()]
        if not shown:
            return caption.nothing(ABOUT, [search.once() for search in searches])
        return _draw(shown, searches)


def _draw(shown: list[Search], searches: list[Search]) -> Figure:
    foot, one = _foot(shown, searches), len(shown) == 1
    columns = sheet.columns(len(shown), len({search.line.key for search in shown}))
    height = ALONE if one else HEIGHT
    told = ["; ".join(reach.reasons(search)) if one else reach.label(search) for search in shown]
    at = {"left": LEFT, "gap": GAP, "right": RIGHT, "past": GAP - 0.12}
    made = sheet.build(told, columns, height, ROW * len(foot) + 0.08, 0.3, **at)
    shared = len({tuple(search.lengths) for search in shown}) == 1
    for i, (search, (x, y)) in enumerate(zip(shown, made.places, strict=True)):
        axes = style.axes_at(made.figure, x, y, made.width, height)
        _scale(axes, search, made.width)
        ends = _plot(axes, search, made.width)
        axes.tick_params(labelleft=i % columns == 0, labelbottom=made.lowest[i] or not shared)
        _name_ends(made, (x, y), axes, ends)
        made.name(i, "" if one else search.name, style.ink(search.line.ink.color))
    words = {"fontsize": style.SMALL, "color": style.GREY, "ha": "center"}
    middle = (LEFT + sheet.WIDTH - RIGHT) / 2
    style.write(made.figure, middle, made.bottom - 0.4, "length (tokens fed, log scale)", **words)
    center = (made.bottom + max(y for _, y in made.places) + height) / 2
    style.write(made.figure, 0.13, center, "answers right", rotation=90, va="center", **words)
    _key(made, shown)
    title = (
        f"{style.shorten(shown[0].name, 24)}: {reach.label(shown[0], why=False)}"
        if one
        else f"{ABOUT}, by where it stands in the input"
    )
    bars = "bars: 95 % interval" if any(np.isfinite(search.numbers("ci_low")).any() for search in shown) else ""
    told = [maps.subtitle(shown, "exact_rate", "a point"), bars]
    style.headline(made.figure, title, " · ".join(filter(None, told)))
    caption.write_foot(made.figure, foot, 0.14, 0.1, ROW)
    return made.figure


def chosen(search: Search) -> list[int]:
    """Rows to draw: start, middle and end, or the positions nearest to these; no row twice."""
    n = len(search.positions)
    return list(range(n)) if n <= 3 else [0, (n - 1) // 2, n - 1]


def _scale(axes: Axes, search: Search, width: float) -> None:
    lengths, trained = search.lengths.tolist(), search.line.train_length
    low, high = math.log2(lengths[0]), math.log2(lengths[-1])
    margin = 0.06 * (high - low) or 0.5
    axes.set(xlim=(2 ** (low - margin), 2 ** (high + margin)), ylim=(-0.05, 1.05))
    ticks.length_axis(axes, lengths, width, [trained] if trained and trained in lengths else ())
    axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:.0f} %"))
    if trained and low - margin <= math.log2(trained) <= high + margin:
        axes.axvline(trained, color="#9a9a9a", linewidth=0.8, zorder=1.5)


def _plot(axes: Axes, search: Search, width: float) -> list[tuple[str, str, float, float]]:
    """Name, colour and last point of each line."""
    rows, lengths, ends = chosen(search), search.lengths, []
    rates, beats = search.numbers("exact_rate"), search.beats
    low, high = search.numbers("ci_low"), search.numbers("ci_high")
    left, right = (math.log2(edge) for edge in axes.get_xlim())
    for name, (dash, _) in CONTROLS.items():
        control = search.numbers(name)[rows]
        known = np.isfinite(control).any(0)
        mean = np.array([np.nanmean(column) if np.isfinite(column).any() else np.nan for column in control.T])
        if known.any():
            marker = "_" if known.sum() == 1 else ""
            axes.plot(
                lengths, mean, color="#777777", linewidth=0.9, linestyle=dash, marker=marker, label=name, zorder=2
            )
    for i, row in enumerate(rows):
        share = i / max(len(rows) - 1, 1)
        color, name = to_hex(colormaps["viridis"](0.02 + 0.72 * share)), search.positions[row]
        x = lengths * 2 ** ((i - (len(rows) - 1) / 2) * ASIDE * (right - left) / width)
        axes.plot(x, rates[row], color=color, linewidth=2.6 - 1.4 * share, label=name, zorder=3 + 0.1 * i)
        axes.vlines(x, low[row], high[row], color=color, linewidth=1.0, alpha=0.6, zorder=2.5)
        for plain in (False, True):
            own = np.isfinite(rates[row]) & ((beats[row] == 0) == plain)
            mark = {
                "marker": MARKERS[i],
                "linewidth": 0,
                "markersize": 4.5,
                "markeredgewidth": 1.0,
                "zorder": 4 + 0.1 * i,
            }
            face = "white" if plain else color
            label = f"{name}, {'like guessing' if plain else 'found'}"
            axes.plot(x[own], rates[row][own], color=color, markerfacecolor=face, label=label, **mark)
        known = np.flatnonzero(np.isfinite(rates[row]))
        if len(known):
            ends.append((name, color, float(x[known[-1]]), float(rates[row][known[-1]])))
    lost = ~np.isfinite(rates[rows]).any(0) & (search.status[rows] != "").any(0)
    axes.plot(lengths[lost], np.zeros(lost.sum()), "x", color=style.GREY, markersize=6, label="failed", zorder=5)
    return ends


def _name_ends(made: Sheet, corner: tuple[float, float], axes: Axes, ends: Sequence[tuple]) -> None:
    """The positions' names right of where the longest line ends, mostly at the edge of the axes."""
    (left, right), (x, y) = (tuple(math.log2(e) for e in axes.get_xlim()), corner)
    low, high = axes.get_ylim()
    points = [
        (x + made.width * (math.log2(at) - left) / (right - left), y + made.height * (rate - low) / (high - low))
        for _, _, at, rate in ends
    ]
    gap = style.extent("Ag", sheet.TINY)[1] + 0.02
    # Ties stand as the input does: the start on top.
    order = labels.spread(
        [up - 1e-6 * i for i, (_, up) in enumerate(points)], gap, y + gap / 2, y + made.height - gap / 2
    )
    edge = min(x + made.width, max(across for across, _ in points) + 0.12)
    for (name, color, _, _), (across, up), at in zip(ends, points, order, strict=True):
        line = {"color": color, "linewidth": 0.6, "alpha": 0.7}
        style.stroke(made.figure, [across + 0.05, edge + 0.02, edge + 0.1], [up, up, at], **line)
        words = {"fontsize": sheet.TINY, "color": style.ink(color), "va": "center_baseline"}
        style.write(made.figure, edge + 0.13, at, style.fit(name, GAP - 0.15, sheet.TINY), **words)


def _key(made: Sheet, shown: Sequence[Search]) -> None:
    """In a row under the subtitle: the two controls, and what a hollow mark means."""
    figure, x = made.figure, 0.14
    y = figure.get_size_inches()[1] - 0.74
    words = {"fontsize": style.SMALL, "color": style.GREY}
    if any((search.beats == 0).any() for search in shown):
        hollow = {"color": style.GREY, "marker": "o", "markerfacecolor": "white", "markersize": 4.5, "linewidth": 0}
        style.stroke(figure, [x + 0.05], [y + 0.045], **hollow)
        told = "hollow: no better than without the evidence"
        style.write(figure, x + 0.15, y, told, **words)
        x += 0.37 + style.extent(told, style.SMALL)[0]
    for name, (dash, told) in CONTROLS.items():
        if any(np.isfinite(search.numbers(name)).any() for search in shown):
            style.stroke(figure, [x, x + 0.3], [y + 0.045] * 2, color="#777777", linewidth=1.1, linestyle=dash)
            style.write(figure, x + 0.36, y, told, **words)
            x += 0.58 + style.extent(told, style.SMALL)[0]


def _foot(shown: list[Search], searches: list[Search]) -> list[str]:
    rows = []
    dropped = [search for search in shown if len(search.positions) > 3]
    if dropped:
        rows.append(f"Drawn are 3 of {len(dropped[0].positions)} positions; the map of cells has them all.")
    trained = caption.trained([search.line for search in shown])
    if trained:
        whose = f"{trained[0]:.0f} tokens" if len(trained) == 1 else "the model's own"
        rows.append(f"Vertical line: the training length, {whose}.")
    if any(reach.reasons(search) for search in shown):
        rows.append("Cross: a length without a number.")
    hidden = [search for search in searches if search not in shown]
    return [*rows, *(f"Not shown: {s.name}: {'; '.join(reach.reasons(s)) or 'no value'}." for s in hidden)]
