"""Loss against visible context, on targets that never change: a line a model; from context.csv and its summary.

A ring marks the best rung. Below the losses lies the horizon of each model with its interval: the smallest context
that is about as good as the best. A model that breaks leaves at the top, with the values it reaches. More than six
models, or models of very different losses, get a panel each.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from lengthbench.plots import caption, curve, ends, ladder_lines, ladder_panels, notes, rungs, style, ticks
from lengthbench.plots.frame import Frame
from lengthbench.plots.rungs import Ladder

MANY = 6
"""Models a single pair of axes can tell apart, each with an interval and a horizon."""
WIDTH, HEIGHT, LEFT, ROW, LANE = 8.0, 3.3, 0.72, 0.17, 0.19


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The figure of `tables["context"]` and `tables["context_summary"]`; never fails for want of numbers."""
    with style.look():
        ladders = rungs.read(tables)
        shown = [ladder for ladder in ladders if np.isfinite(ladder.nll).any()]
        if not shown:
            return caption.nothing("Loss against visible context", [ladder.full for ladder in ladders])
        foot = _foot(shown, ladders)
        if len(shown) > MANY or rungs.levels_differ(shown):
            figure = ladder_panels.draw(shown, foot)
        else:
            several = len(caption.trained([ladder.full for ladder in shown])) > 1
            bars = ["Bars on the lines mark each model's training length."] if several else []
            figure = _single(shown, [*foot, *bars])
        style.headline(figure, _title(shown), _subtitle(shown))
        return figure


def _single(shown: list[Ladder], foot: list[str]) -> Figure:
    lines, y = [ladder.full for ladder in shown], rungs.view(shown)
    lanes = [ladder for ladder in shown if ladder.horizon is not None]
    at_end = [line for line in lines if notes.ends_in_view(line, y)]
    sizes = [style.extent(line.name, style.BODY)[0] for line in at_end]
    sizes += [style.extent(_lane(ladder), style.SMALL)[0] for ladder in lanes]
    shortest, longest = curve.span(lines)
    low = 0.56 + ROW * len(foot) + 0.08
    bottom = low + (LANE * len(lanes) + 0.14 if lanes else 0)
    frame = Frame(LEFT, bottom, WIDTH - LEFT - max(sizes, default=0) - 0.5, HEIGHT, shortest, longest, y)
    found = [(line, e) for line in lines if (e := notes.exit_of(line, y, line.name))]
    leaving, exits = [line for line, _ in found], [e for _, e in found]
    spots = ends.place_exits(exits, [frame.x(e.length) for e in exits], WIDTH - 0.1)
    above = 0.16 + ROW * (1 + max(row for _, row in spots)) if spots else 0.06
    figure = style.new_figure(WIDTH, bottom + HEIGHT + above + 0.66)
    axes = style.axes_at(figure, LEFT, bottom, frame.width, HEIGHT)
    axes.set_xlim(shortest, longest)
    ladder_lines.scale(axes, y)
    axes.set_ylabel("loss (nats per token)", fontsize=style.SMALL)
    ticks.length_axis(axes, curve.measured(lines), frame.width, caption.trained(lines))
    for ladder in shown:
        ladder_lines.plot(axes, ladder, y.high)
    if lanes:
        axes.tick_params(labelbottom=False)
        axes = _lanes(figure, frame, low, lanes, curve.measured(lines), caption.trained(lines))
    axes.set_xlabel("visible context (tokens, log scale)", fontsize=style.SMALL)
    ends.name_exits(figure, frame, leaving, exits, spots)
    ends.name_ends(figure, frame, at_end)
    _mark(figure, figure.axes[0], frame, shown)
    caption.write_foot(figure, foot, LEFT, 0.1, ROW)
    return figure


def _lane(ladder: Ladder) -> str:
    return f"{ladder.full.name}: {ladder.told().removeprefix('horizon ')}"


def _lanes(figure: Figure, frame: Frame, bottom: float, lanes: list[Ladder], known, trained) -> Axes:
    """The horizons, a lane each, under the losses."""
    axes = style.axes_at(figure, frame.left, bottom, frame.width, LANE * len(lanes))
    axes.set(xlim=(frame.shortest, frame.longest), ylim=(-0.5, len(lanes) - 0.5))
    ticks.length_axis(axes, known, frame.width, trained)
    axes.yaxis.set_major_locator(NullLocator())
    axes.set_ylabel("horizon", fontsize=style.SMALL, rotation=0, ha="right", va="center", labelpad=6)
    for i, ladder in enumerate(reversed(lanes)):
        ladder_lines.mark_horizon(axes, ladder, i)
        words = {"fontsize": style.SMALL, "color": style.ink(ladder.full.ink.color), "va": "center_baseline"}
        style.write(figure, frame.left + frame.width + 0.26, bottom + LANE * (i + 0.5), _lane(ladder), **words)
    return axes


def _mark(figure: Figure, axes: Axes, frame: Frame, shown: list[Ladder]) -> None:
    """The training length, a line where all share it, else a bar on each; and why lines stop."""
    lines = [ladder.full for ladder in shown]
    points = ends.samples(frame, [*lines, *(ladder.swap for ladder in shown if ladder.swap)])
    trained, taken = caption.trained(lines), []
    if len(trained) == 1 and frame.shortest <= trained[0] <= frame.longest:
        for own in figure.axes:
            own.axvline(trained[0], color="#9a9a9a", linewidth=0.8, zorder=1.5)
        top = (frame.x(trained[0]), frame.bottom + frame.height - 0.08)
        upright = [(top[0], y) for y in np.arange(frame.bottom, top[1], 0.03)]
        points = np.concatenate([points, upright])
        taken.append(ends.put(figure, frame, f"trained at {trained[0]:.0f}", top, points, taken, style.GREY))
    for line in lines:
        place = caption.on_line(line, frame.y) if len(trained) > 1 else None
        if place:
            axes.plot(*place, "|", color=line.ink.color, markersize=13, markeredgewidth=1.8, zorder=4)
        last = notes.stop_at(line, frame.y)
        if last is not None:
            value = min(line.column("nll")[last], frame.y.high)
            axes.plot([line.lengths[last]], [value], "x", color=line.ink.color, markersize=8, markeredgewidth=1.6)
            point, color = frame.at(line.lengths[last], value), style.ink(line.ink.color)
            words = f"{style.shorten(line.name, 16)}: {'; '.join(notes.stops(line))}"
            taken.append(ends.put(figure, frame, words, point, points, taken, color))
            ends.lead(figure, point, taken[-1], color)


def _title(shown: Sequence[Ladder]) -> str:
    first = shown[0]
    if len(shown) > 1:
        return "How much visible context lowers the loss, on the same targets"
    name = style.shorten(first.full.name, 24)
    if first.horizon is None or not np.isfinite(first.epsilon):
        return f"{name}: loss by visible context, on the same targets"
    known = first.full.lengths[np.isfinite(first.nll)]
    if len(known) > 1 and first.horizon == known[-1]:
        return f"{name}: more context still helps at {first.horizon:.0f} tokens"
    return f"{name}: {first.horizon:.0f} tokens of context are within {first.epsilon:g} nats of the best"


def _subtitle(shown: Sequence[Ladder]) -> str:
    lines = [ladder.full for ladder in shown]
    shaded = any(np.isfinite(ladder.band()[0]).any() for ladder in shown)
    paired = any(ladder.paired for ladder in shown)
    what = "shaded: 95 % interval" + (" of the distance to the best rung" if paired else "")
    parts = [*caption.words(lines, "data"), caption.targets(lines), *caption.words(lines, "dtype")]
    return " · ".join(filter(None, [*parts, what if shaded else ""]))


def _foot(shown: list[Ladder], ladders: list[Ladder]) -> list[str]:
    rows = ["Ring: the best rung, where the loss is lowest."]
    known = [ladder for ladder in shown if ladder.horizon is not None]
    if known:
        near = sorted({f"{ladder.epsilon:g}" for ladder in known if np.isfinite(ladder.epsilon)})
        within = f"within {near[0]} nats of" if len(near) == 1 else "about as good as"
        rows.append(f"Horizon: the smallest context {within} the best rung, with its 95 % interval.")
    if any(ladder.swap for ladder in shown):
        rows.append("Dashed: as many tokens, but those far away are from another text.")
    hidden = [ladder.full for ladder in ladders if ladder not in shown and notes.stops(ladder.full)]
    rows += [f"Not shown: {line.name}: {'; '.join(notes.stops(line))}." for line in hidden]
    short = notes.too_short([ladder.full for ladder in ladders])
    return [*rows, short] if short else rows
