"""Loss against context: what a target costs by how many tokens came before it; a panel a model, a line a length.

Beyond the training length (grey ground) a model breaks or it does not. At the left the early tokens (orange bar):
targets near a window's start have little context and cost more, whatever the model. From positions.csv, of each
model the nonoverlapping rows where there are some: their contexts run from 1 to the length.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lengthbench.plots import caption, contexts, grid, notes, style, ticks
from lengthbench.plots.series import Series, read

HEIGHT, ALONE, ROW = 1.55, 2.8, 0.17


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The figure of `tables["positions"]`; the words around it also from `tables["ppl"]`, where that is given."""
    with style.look():
        lines = _one_protocol(read(tables.get("positions")))
        shown = [line for line in lines if np.isfinite(line.column("nll") + contexts.middles(line)).any()]
        if not shown:
            return caption.nothing("Loss against context", lines)
        return _draw(shown, _one_protocol(read(tables.get("ppl"))))


def _draw(lines: list[Series], summary: list[Series]) -> Figure:
    lengths = sorted({float(n) for line in lines for n in line.lengths})
    colors = dict(zip(lengths, _shades(len(lengths)), strict=True))
    edge = max(float(np.nanmax(line.numbers("context_to"))) for line in lines)
    foot = _foot(lines, edge)
    height = HEIGHT if len(lines) > 1 else ALONE
    made = grid.build(len(lines), 3 if len(lines) <= 9 else 4, height, ROW * len(foot) + 0.08, above=0.22)
    low, high = _limits(lines)
    left = min(float(np.nanmin(contexts.middles(line))) for line in lines) / 1.3
    marks = [2.0**p for p in range(0, math.ceil(math.log2(max(edge, 1))) + 1, 2) if 2.0**p <= edge]
    for i, (line, axes) in enumerate(zip(lines, made.panels, strict=True)):
        axes.set_xlim(left, max(edge, 1) * 1.2)
        axes.set_ylim(low, high)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        _plot(axes, line, colors)
        _mark_regions(axes, line)
        trained = [line.train_length] if line.train_length and line.train_length <= edge else []
        ticks.length_axis(axes, [*marks, *trained], made.width, trained)
        axes.tick_params(labelbottom=made.lowest[i])
        words = [_mark_exit(axes, line, high), *(r for s in summary if s.key == line.key for r in notes.stops(s))]
        made.name(i, line.name, "; ".join(filter(None, words)), style.ink(line.ink.color))
    _key(made, colors)
    caption.axis_titles(made, "context (tokens before the target, log scale)", "loss (nats per token)")
    style.headline(made.figure, "What a token costs, by how many tokens came before it", _subtitle(lines, summary))
    caption.write_foot(made.figure, foot, grid.LEFT, 0.1, ROW)
    return made.figure


def _limits(lines: Sequence[Series]) -> tuple[float, float]:
    low, top = min(float(np.nanmin(line.column("nll"))) for line in lines), contexts.ceiling(lines)
    middle, half = (low + top) / 2, max(top - low, 0.4) / 2
    return middle - 1.16 * half, middle + 1.16 * half


def _plot(axes: Axes, line: Series, colors: dict[float, str]) -> None:
    x, nll = contexts.middles(line), line.column("nll")
    low, high = line.column("ci_low"), line.column("ci_high")
    for i, (length, color) in enumerate(colors.items()):
        rows = contexts.rows_at(line, length)
        if len(rows):
            # Lines that agree lie on each other: the shorter length is drawn wider, below.
            width = 3.0 - 1.8 * i / max(len(colors) - 1, 1)
            marker = "o" if len(rows) == 1 else ""
            axes.plot(x[rows], nll[rows], color=color, linewidth=width, marker=marker, label=f"{length:.0f}")
            axes.fill_between(x[rows], low[rows], high[rows], color=color, alpha=0.13, linewidth=0)


def _mark_regions(axes: Axes, line: Series) -> None:
    """Grey beyond the training length; on the left a bar at the foot under the early tokens."""
    (left, right), foot = axes.get_xlim(), axes.get_ylim()[0]
    if line.train_length and left < line.train_length < right:
        axes.axvspan(line.train_length, right, color="#efefef", zorder=0)
        axes.axvline(line.train_length, color="#8a8a8a", linewidth=0.8, zorder=1)
    end = contexts.early(line)
    if end is not None:
        axes.plot([left, end], [foot, foot], color=style.EARLY, linewidth=5, solid_capstyle="butt", zorder=4)


def _mark_exit(axes: Axes, line: Series, high: float) -> str:
    """An arrow where the line with the largest loss leaves at the top, and that loss in words; else nothing."""
    nll = np.where(np.isfinite(line.column("nll")), line.column("nll"), -np.inf)
    worst = int(nll.argmax())
    if nll[worst] <= high:
        return ""
    rows = contexts.rows_at(line, line.lengths[worst])
    first = int(np.argmax(nll[rows] > high))
    around = rows[max(first - 1, 0) : first + 1]
    crossing = 2 ** float(np.interp(high, nll[around], np.log2(contexts.middles(line)[around])))
    axes.plot([crossing], [high], "^", color=style.INK, markersize=4.5, clip_on=False, zorder=6)
    low, top = line.numbers("context_from")[worst], line.numbers("context_to")[worst]
    return f"↑ {nll[worst]:.2f} at {low:.0f} to {top:.0f}"


def _shades(n: int) -> list[str]:
    """From light (short) to dark (long), so that grey print keeps their order."""
    return [to_hex(colormaps["viridis_r"](0.12 + 0.88 * (i / (n - 1) if n > 1 else 0.7))) for i in range(n)]


def _key(made: grid.Grid, colors: dict[float, str]) -> None:
    """The colours of the lengths in a row; where they are too many, a ramp with its ends named."""
    x, y = 0.14, made.figure.get_size_inches()[1] - 0.76
    names = [f"{length:.0f}" for length in colors]
    needed = sum(style.extent(name, style.SMALL)[0] + 0.5 for name in names)
    ramp = x + style.extent("length fed:", style.SMALL)[0] + needed > made.right
    words = f"length fed, {names[0]} to {names[-1]}:" if ramp else "length fed:"
    style.write(made.figure, x, y, words, fontsize=style.SMALL, color=style.GREY)
    x += style.extent(words, style.SMALL)[0] + 0.12
    step = min(0.24, (made.right - x) / len(names))
    for name, color in zip(names, colors.values(), strict=True):
        at = {"color": color, "linewidth": 4 if ramp else 2.4, "solid_capstyle": "butt"}
        style.stroke(made.figure, [x, x + step], [y + 0.045] * 2, **at)
        if not ramp:
            style.write(made.figure, x + 0.3, y, name, fontsize=style.SMALL)
        x += step if ramp else style.extent(name, style.SMALL)[0] + 0.5


def _one_protocol(lines: list[Series]) -> list[Series]:
    """The first protocol of each model: nonoverlapping where there is one."""
    return list({line.key: line for line in reversed(lines)}.values())[::-1]


def _subtitle(lines: list[Series], summary: list[Series]) -> str:
    protocols = ", ".join(dict.fromkeys(line.protocol for line in lines if line.protocol))
    shaded = any(np.isfinite(line.column("ci_low")).any() for line in lines)
    parts = [*caption.words(summary, "data"), caption.targets(summary), *caption.words(summary, "dtype")]
    parts += [f"{protocols} windows" if protocols else "", "band: 95 % interval" if shaded else ""]
    return " · ".join(filter(None, parts))


def _foot(lines: list[Series], edge: float) -> list[str]:
    rows = []
    if any(contexts.early(line) is not None for line in lines):
        more = f"{100 * contexts.DEAR - 100:.0f} %"
        rows.append(f"Orange bar: early tokens, over {more} dearer than at the longest context within training.")
    trained = caption.trained(lines)
    if trained and trained[0] < edge:
        whose = f"{trained[0]:.0f} tokens of training" if len(trained) == 1 else "model's training length"
        rows.append(f"Grey ground: contexts beyond the {whose}.")
    return rows
