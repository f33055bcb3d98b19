"""Perplexity against length for many models: a panel each, with all the others in grey behind it."""

import numpy as np
from matplotlib.figure import Figure

from lengthbench.plots import caption, curve, grid, notes, style, ticks
from lengthbench.plots.scale import Scale
from lengthbench.plots.series import Series

COLUMNS, HEIGHT, ROW = 4, 1.15, 0.17


def draw(lines: list[Series], y: Scale) -> Figure:
    keys = list(dict.fromkeys(line.key for line in lines))
    foot = [*caption.foot(lines, y, listed=False), "Grey: the other models."]
    made = grid.build(len(keys), COLUMNS, HEIGHT, ROW * len(foot) + 0.08)
    shortest, longest = curve.span(lines)
    trained = caption.trained(lines)
    for i, (key, axes) in enumerate(zip(keys, made.panels, strict=True)):
        own = [line for line in lines if line.key == key]
        axes.set_xlim(shortest, longest)
        y.apply(axes)
        ticks.length_axis(axes, curve.measured(lines), made.width, trained if len(trained) == 1 else ())
        axes.tick_params(labelbottom=made.lowest[i])
        for line in lines:
            if line.key != key and np.isfinite(line.column(y.column)).any():
                curve.plot(axes, line, y, muted=True)
        for line in own:
            curve.plot(axes, line, y)
        if own[0].train_length and shortest <= own[0].train_length <= longest:
            axes.axvline(own[0].train_length, color="#9a9a9a", linewidth=0.8, zorder=1.5)
        made.name(i, own[0].name, _words(own[0], y), style.ink(own[0].ink.color))
        _mark_exit(made, i, own[0], y)
    caption.axis_titles(made, "length (tokens fed, log scale)", y.title)
    style.headline(made.figure, caption.title(lines, y), caption.subtitle(lines, y))
    caption.write_foot(made.figure, foot, grid.LEFT, 0.1, ROW)
    return made.figure


def _words(line: Series, y: Scale) -> str:
    """What the panel cannot show, else where the line begins and ends."""
    found = notes.exit_of(line, y, line.name)
    told = ([f"↑ {found.short}"] if found else []) + notes.stops(line)
    if told:
        return "; ".join(told)
    values = line.column(y.column)
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return "no value"
    ends = dict.fromkeys((int(known[0]), int(known[-1])))
    return ", ".join(f"{style.number(values[i])} at {line.lengths[i]:.0f}" for i in ends)


def _mark_exit(made: grid.Grid, index: int, line: Series, y: Scale) -> None:
    found = notes.exit_of(line, y, line.name)
    if found:
        axes = made.panels[index]
        axes.plot([found.length], [y.high], "^", color=line.ink.color, markersize=4.5, clip_on=False, zorder=6)
