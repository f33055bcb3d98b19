"""Perplexity against length: a line a model, from ppl.csv; more than ten models get a panel each.

Names stand at the ends of the lines. A line that explodes leaves at the top, with the values it reaches; one that
cannot go on ends in a cross, with the reason. Shaded: the interval. Models of several tokenizers: bits per byte.
"""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lengthbench.plots import caption, curve, ends, labels, notes, perplexity_panels, scale, style, ticks
from lengthbench.plots.frame import Frame
from lengthbench.plots.labels import Box
from lengthbench.plots.scale import Scale
from lengthbench.plots.series import Series, read

MANY = 10
"""Models a single pair of axes can name legibly."""
WIDTH, NARROW, HEIGHT = 8.0, 6.0, 3.7
"""Inches: of the figure, of one for a single length, and the height of the axes."""
LEFT, ROW = 0.72, 0.17


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The figure of `tables["ppl"]`; never fails for want of numbers."""
    with style.look():
        lines = read(tables.get("ppl"))
        y = scale.choose(lines)
        if y is None:
            return caption.nothing("Perplexity against length", lines)
        if len({line.key for line in lines}) > MANY:
            return perplexity_panels.draw(lines, y)
        return _single(lines, y)


def _single(lines: list[Series], y: Scale) -> Figure:
    shown = [line for line in lines if np.isfinite(line.column(y.column)).any()]
    foot = caption.foot(lines, y)
    at_end = [line for line in shown if notes.label(line, lines) == line.name and notes.ends_in_view(line, y)]
    wide = max((0.3 + style.extent(line.name, style.BODY)[0] for line in at_end), default=0)
    shortest, longest = curve.span(lines)
    width = WIDTH if len(curve.measured(lines)) > 1 else NARROW
    bottom = 0.56 + ROW * len(foot) + (0.08 if foot else 0)
    frame = Frame(LEFT, bottom, width - LEFT - wide - 0.2, HEIGHT, shortest, longest, y)
    exits = [(line, found) for line in lines if (found := notes.exit_of(line, y, notes.label(line, lines)))]
    leaving, found = [line for line, _ in exits], [each for _, each in exits]
    spots = ends.place_exits(found, [frame.x(each.length) for each in found], width - 0.1)
    above = (0.16 + ROW * (1 + max(row for _, row in spots))) if spots else 0.06
    figure = style.new_figure(width, bottom + HEIGHT + above + 0.66)
    axes = style.axes_at(figure, frame.left, frame.bottom, frame.width, frame.height)
    axes.set_xlim(shortest, longest)
    y.apply(axes)
    ticks.length_axis(axes, curve.measured(lines), frame.width, caption.trained(lines))
    axes.set_xlabel("length (tokens fed, log scale)", fontsize=style.SMALL)
    axes.set_ylabel(y.title, fontsize=style.SMALL)
    for line in shown:
        curve.plot(axes, line, y)
    ends.name_exits(figure, frame, leaving, found, spots)
    ends.name_ends(figure, frame, at_end)
    taken = _mark_training(figure, axes, frame, shown)
    _name_stops(figure, frame, [line for line in shown if notes.label(line, lines) == line.name], shown, taken)
    style.headline(figure, caption.title(lines, y), caption.subtitle(lines, y))
    caption.write_foot(figure, foot, LEFT, 0.1, ROW)
    return figure


def _mark_training(figure: Figure, axes: Axes, frame: Frame, shown: list[Series]) -> list[Box]:
    """A thin vertical line where all models share it, else a bar on each line; returns the place of its words."""
    trained = caption.trained(shown)
    if len(trained) == 1 and frame.shortest <= trained[0] <= frame.longest:
        axes.axvline(trained[0], color="#9a9a9a", linewidth=0.8, zorder=1.5)
        words = f"trained at {trained[0]:.0f}"
        top = (frame.x(trained[0]), frame.bottom + frame.height - 0.08)
        return [_put(figure, frame, words, top, shown, [], style.GREY)]
    if len(trained) > 1:
        for line in shown:
            place = caption.on_line(line, frame.y)
            if place:
                axes.plot(*place, "|", color=line.ink.color, markersize=13, markeredgewidth=1.8, zorder=4)
    return []


def _name_stops(figure: Figure, frame: Frame, lines: list[Series], shown: list[Series], taken: list[Box]) -> None:
    """The reason beside the cross of each line that cannot go on."""
    for line in lines:
        last = notes.stop_at(line, frame.y)
        if last is not None:
            point = frame.at(line.lengths[last], min(line.column(frame.y.column)[last], frame.y.high))
            words = f"{line.name}: {'; '.join(notes.stops(line))}"
            taken.append(_put(figure, frame, words, point, shown, taken, style.ink(line.ink.color), leader=True))


def _put(figure, frame: Frame, words: str, point, shown, taken, color: str, leader: bool = False) -> Box:
    """Words near a point of the axes, clear of lines and of other words."""
    inside = Box(frame.left + 0.04, frame.bottom + 0.03, frame.left + frame.width, frame.bottom + frame.height - 0.03)
    size = style.extent(words, style.SMALL)
    box = labels.free_spot(point, size, inside, _samples(frame, shown), taken)
    style.write(figure, box.left, box.bottom, words, fontsize=style.SMALL, color=color, va="bottom")
    if leader:
        ends.lead(figure, point, box, color)
    return box


def _samples(frame: Frame, shown: list[Series]) -> np.ndarray:
    """Points (n, 2) along all lines, in inches, close enough that no label slips between them."""
    points = []
    for line in shown:
        values = line.column(frame.y.column)
        keep = values > 0
        own = [frame.at(n, min(v, 1e300)) for n, v in zip(line.lengths[keep], values[keep], strict=True)]
        own = [
            (x, min(y, frame.bottom + frame.height)) if math.isinf(v) else (x, y)
            for (x, y), v in zip(own, values[keep], strict=True)
        ]
        for (x0, y0), (x1, y1) in zip(own, own[1:] or own, strict=False):
            steps = np.linspace(0, 1, 60)
            points += list(zip(x0 + (x1 - x0) * steps, y0 + (y1 - y0) * steps, strict=True))
    return np.array(points)
