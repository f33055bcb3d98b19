"""Perplexity and retrieval side by side: a model's perplexity can stay flat while it no longer finds what it was given.

Two panels a model (and task) over one axis of lengths, from ppl.csv and needle.csv: above, perplexity as a multiple
of that at the training length; below, how often the fact is found, all positions together.
"""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

from lengthbench.plots import caption, maps, pairs, sheet, style, ticks
from lengthbench.plots.pairs import Pair
from lengthbench.plots.sheet import Sheet

ABOUT = "Perplexity and retrieval"
LEFT, GAP, RIGHT, UPPER, BETWEEN, LOWER, ROW = 0.82, 0.3, 0.3, 0.6, 0.1, 0.75, 0.17
LOW, HIGH = 0.8, 4.0
"""Times the perplexity at the training length: what the upper panels show; what is beyond leaves at the top."""


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The figure of `tables["ppl"]` and `tables["needle"]`; never fails for want of numbers."""
    with style.look():
        every = pairs.read(tables.get("ppl"), tables.get("needle"))
        shown = [pair for pair in every if pair.drawable]
        if not shown:
            return caption.nothing(ABOUT, [pair.search.once() for pair in every])
        return _draw(shown, every)


def _draw(shown: list[Pair], every: list[Pair]) -> Figure:
    foot, one = _foot(shown, every), len(shown) == 1
    upper, lower = (1.7 * h if one else h for h in (UPPER, LOWER))
    columns = sheet.columns(len(shown), len({pair.search.line.key for pair in shown}))
    height = upper + BETWEEN + lower
    told = [pair.numbers() if one else "\n".join(filter(None, [pair.finding(), pair.numbers()])) for pair in shown]
    at = {"left": LEFT, "gap": GAP, "right": RIGHT, "past": GAP - 0.08}
    made = sheet.build(told, columns, height, ROW * len(foot) + 0.08, 0.3, **at)
    shared = len({tuple(pair.lengths) for pair in shown}) == 1
    for i, (pair, (x, y)) in enumerate(zip(shown, made.places, strict=True)):
        panels = (("found", y, lower, _found), ("perplexity", y + lower + BETWEEN, upper, _perplexity))
        for name, foot_at, high, plot in panels:
            axes = style.axes_at(made.figure, x, foot_at, made.width, high)
            _lengths(axes, pair, made.width)
            labelled = plot is _found and (made.lowest[i] or not shared)
            axes.tick_params(labelleft=i % columns == 0, labelbottom=labelled)
            plot(axes, pair)
            if i % columns == 0:
                side = {"rotation": 90, "ha": "center", "va": "center", "fontsize": sheet.TINY, "color": style.GREY}
                style.write(made.figure, 0.2, foot_at + high / 2, name, **side)
        made.name(i, "" if one else pair.name, style.ink(pair.search.line.ink.color))
    words = {"fontsize": style.SMALL, "color": style.GREY, "ha": "center"}
    style.write(
        made.figure, (LEFT + sheet.WIDTH - RIGHT) / 2, made.bottom - 0.4, "length (tokens fed, log scale)", **words
    )
    _key(made, shown)
    style.headline(made.figure, _title(shown), _subtitle(shown))
    caption.write_foot(made.figure, foot, 0.14, 0.1, ROW)
    return made.figure


def _lengths(axes: Axes, pair: Pair, width: float) -> None:
    known, trained = pair.lengths, pair.trained
    low, high = math.log2(known[0]), math.log2(known[-1])
    margin = 0.05 * (high - low) or 0.5
    axes.set_xlim(2 ** (low - margin), 2 ** (high + margin))
    ticks.length_axis(axes, known, width, [trained] if trained in known else ())
    if trained and low - margin <= math.log2(trained) <= high + margin:
        axes.axvline(trained, color="#9a9a9a", linewidth=0.8, zorder=1.5)


def _perplexity(axes: Axes, pair: Pair) -> None:
    """The multiples on a log scale that is the same for all models, so that flat looks flat."""
    axes.set_yscale("log", base=2)
    axes.set_ylim(LOW, HIGH)
    axes.yaxis.set_major_locator(FixedLocator([1, 2, 4]))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}×"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    ink = pair.search.line.ink
    lengths = np.array(list(pair.ratios))
    values = np.array(list(pair.ratios.values()))
    drawn = np.minimum(values, HIGH * 4)  # the way up is drawn, not the height
    axes.axhline(1, color="#9a9a9a", linewidth=0.8, linestyle=(0, (2, 2)), zorder=1.4)
    look = {"color": ink.color, "markersize": 4.5, "markeredgecolor": "white", "markeredgewidth": 0.5}
    axes.plot(lengths, drawn, marker=ink.marker, linewidth=1.8, label="perplexity", zorder=3, **look)
    out = np.flatnonzero(values > HIGH)
    if len(out):
        edge = _crossing(lengths, values, int(out[0]))
        axes.plot([edge], [HIGH], "^", color=ink.color, markersize=5, clip_on=False, zorder=6, label="leaves")


def _crossing(lengths: np.ndarray, values: np.ndarray, first: int) -> float:
    """Where the line passes the top edge."""
    if not first:
        return float(lengths[0])
    x, y = np.log2(lengths[first - 1 : first + 1]), np.log2(np.minimum(values[first - 1 : first + 1], HIGH * 4))
    return float(2 ** np.interp(math.log2(HIGH), y, x))


def _found(axes: Axes, pair: Pair) -> None:
    """The rate over all positions with the ground below it filled, and bars from the worst position to the best."""
    axes.set_ylim(-0.06, 1.06)
    axes.yaxis.set_major_locator(FixedLocator([0, 0.5, 1]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:.0f} %"))
    ink = pair.search.line.ink
    lengths, color = np.array(list(pair.rates)), ink.color
    mean, low, high = (
        np.array([getattr(rate, name) for rate in pair.rates.values()]) for name in ("mean", "low", "high")
    )
    none = np.array([rate.found == 0 for rate in pair.rates.values()])
    axes.fill_between(lengths, 0, mean, color=color, alpha=0.18, linewidth=0, zorder=1)
    axes.vlines(lengths, low, high, color=color, linewidth=1.0, zorder=2.5)
    axes.plot(lengths, mean, color=color, linewidth=1.8, zorder=3, label="found")
    mark = {"marker": ink.marker, "linewidth": 0, "markersize": 4.5, "markeredgewidth": 1.1, "zorder": 4}
    axes.plot(lengths[~none], mean[~none], color=color, label="above guessing", **mark)
    axes.plot(lengths[none], mean[none], color=color, markerfacecolor="white", label="like guessing", **mark)


def _key(made: Sheet, shown: Sequence[Pair]) -> None:
    """In a row under the subtitle: what the two panels show, and what a hollow mark means."""
    references = {pair.reference for pair in shown if pair.reference}
    base = f"{references.pop():.0f} tokens" if len(references) == 1 else "the training length"
    told = [f"Upper: perplexity, 1× is that at {base}", "Lower: facts found", "hollow: no better than guessing"]
    if not any(rate.found == 0 for pair in shown for rate in pair.rates.values()):
        told = told[:2]
    x, y = 0.14, made.figure.get_size_inches()[1] - 0.74
    for i, words in enumerate(told):
        if i == 2:
            hollow = {"color": style.GREY, "marker": "o", "markerfacecolor": "white", "markersize": 4.5, "linewidth": 0}
            style.stroke(made.figure, [x + 0.04], [y + 0.045], **hollow)
            x += 0.14
        style.write(made.figure, x, y, words, fontsize=style.SMALL, color=style.GREY)
        x += style.extent(words, style.SMALL)[0] + 0.26


def _title(shown: Sequence[Pair]) -> str:
    if len(shown) == 1:
        return f"{style.shorten(shown[0].name, 24)}: {shown[0].finding() or 'perplexity and retrieval'}"
    keys = list(dict.fromkeys(pair.search.line.key for pair in shown))
    losing = [pair for pair in shown if pair.lost]
    if not losing:
        return f"{ABOUT} at the same lengths"
    names = list(dict.fromkeys(pair.search.line.name for pair in losing))
    who = style.shorten(names[0], 24) if len(names) == 1 else f"{len(names)} of {len(keys)} models"
    return (
        f"{who}: perplexity stays flat, {'retrieval is gone' if all(p.gone for p in losing) else 'yet facts are lost'}"
    )


def _subtitle(shown: Sequence[Pair]) -> str:
    found, sweeps = [pair.search for pair in shown], [pair.ppl for pair in shown if pair.ppl]
    lines = [*sweeps, *(search.line for search in found)]
    parts = [*caption.words(lines, "data"), *caption.words(lines, "dtype"), caption.targets(sweeps)]
    tasks = list(dict.fromkeys(search.task for search in found if search.task))
    parts += [f"task {', '.join(tasks)}"] if tasks else []
    parts += [maps.trials(found, "exact_rate", "a position and length")]
    return " · ".join(filter(None, parts))


def _foot(shown: list[Pair], every: list[Pair]) -> list[str]:
    rows = ["Found: the whole answer is right; the mean over positions, bars from the worst position to the best."]
    rows.append(f"Perplexity flat: at most {100 * pairs.FLAT - 100:.0f} % above 1×; breaks: {pairs.BREAKS:g}× or more.")
    rows.append("Retrieval gone: at no position better than guessing.")
    trained = sorted({pair.trained for pair in shown if pair.trained})
    if trained:
        whose = f"{trained[0]:.0f} tokens" if len(trained) == 1 else "the model's own"
        rows.append(f"Vertical line: the training length, {whose}.")
    if any((np.array(list(pair.ratios.values())) > HIGH).any() for pair in shown):
        rows.append(f"Arrow: beyond {HIGH:g}×.")
    hidden = [pair for pair in every if pair not in shown]
    return [*rows, *(f"Not shown: {pair.name}: {'; '.join(pair.reasons()) or 'no value'}." for pair in hidden)]
