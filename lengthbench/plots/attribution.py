"""What a longer input changes, and why: relief from short contexts, or use of what is far away; from attribution.csv.

A row a model, each with its finding in words. From left to right: the change from the base length W on, split into
its two parts; the same for the last targets of each window, where the text beyond W is swapped for another; and the
losses behind the first. Every panel has its own scale, so that a model that breaks hides no other's small effect.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lengthbench.plots import bars, caption, fan, finding, key, labels, notes, style, ticks
from lengthbench.plots.split import ALL, END, Split, read

WIDTH, LEFT, GAP, ROW = 8.0, 0.66, 0.62, 0.17
HEAD, TICKS = 0.5, 0.3
"""Inches of a row above its axes, for words, and below them, for the numbers of the ticks."""
TINY = 7.0


@dataclass(frozen=True)
class Columns:
    """Left edges and widths of the three kinds of panels, in inches; no column for a kind that nobody measured."""

    all: tuple[float, float]
    end: tuple[float, float] | None
    fan: tuple[float, float]


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The figure of `tables["attribution"]`; never fails for want of numbers."""
    with style.look():
        splits = read(tables.get("attribution"))
        shown = [split for split in splits if finding.longest(split) is not None]
        if not shown:
            return caption.nothing("What a longer input changes", [split.once() for split in splits])
        return _draw(shown, splits)


def _draw(shown: list[Split], splits: list[Split]) -> Figure:
    columns, foot = _columns(shown), _foot(shown, splits)
    n = len(shown)
    height = {1: 2.3, 2: 1.7}.get(n, 1.25 if n <= 6 else 0.95)
    bottom = 0.6 + ROW * len(foot)
    pitch = HEAD + height + TICKS
    keys = key.height(max(len(rows) for rows in _keys(shown)))
    figure = style.new_figure(WIDTH, bottom + n * pitch - TICKS + 0.68 + keys)
    for i, split in enumerate(shown):
        at = bottom + (n - 1 - i) * pitch
        _name(figure, split, at + height)
        _bars(figure, split, ALL, columns.all, at, height)
        if columns.end:
            _bars(figure, split, END, columns.end, at, height)
        _fan(figure, split, columns.fan, at, height)
    for left, width in filter(None, (columns.all, columns.end, columns.fan)):
        words = {"fontsize": style.SMALL, "color": style.GREY, "ha": "center"}
        style.write(figure, left + width / 2, bottom - 0.38, "length (tokens fed)", **words)
    _write_keys(figure, shown, columns)
    style.headline(figure, _title(shown), _subtitle(shown))
    caption.write_foot(figure, foot, 0.14, 0.08, ROW)
    return figure


def _columns(shown: list[Split]) -> Columns:
    if any(np.isfinite(split.part(name).nats).any() for split in shown for name in END):
        return Columns((LEFT, 2.4), (LEFT + 2.4 + GAP, 1.45), (LEFT + 3.85 + 2 * GAP, 1.7))
    return Columns((LEFT, 3.3), None, (LEFT + 3.3 + GAP, 2.9))


def _name(figure: Figure, split: Split, top: float) -> None:
    """The model and what it shows, and under them the numbers of its longest length."""
    name = style.squeeze(split.name, 2.6, style.BODY)
    style.write(figure, 0.14, top + 0.27, name, color=style.ink(split.line.ink.color), weight="bold")
    left = 0.14 + style.extent(name, style.BODY, "bold")[0] + 0.12
    found = style.fit(finding.label(split), WIDTH - left - 0.14, style.BODY, "bold")
    style.write(figure, left, top + 0.27, found, weight="bold")
    numbers = style.fit(finding.figures(split), WIDTH - 0.28, TINY)
    style.write(figure, 0.14, top + 0.11, numbers, fontsize=TINY, color=style.GREY)


def _bars(figure, split: Split, names: tuple[str, str, str], place: tuple[float, float], at, height: float) -> None:
    left, width = place
    whole, *parts = names
    if not any(np.isfinite(split.part(name).nats).any() for name in names):
        _empty(figure, left, at + height / 2, "not measured")
        return
    axes = style.axes_at(figure, left, at, width, height)
    bars.plot(axes, {name: split.part(name) for name in parts}, split.part(whole), split.failed(names))
    ticks.slot_axis(axes, split.lengths.tolist(), width)


def _fan(figure: Figure, split: Split, place: tuple[float, float], at: float, height: float) -> None:
    left, width = place
    if not np.isfinite(fan.losses(split)[1]["full"]).any():
        _empty(figure, left, at + height / 2, "no losses in the table")
        return
    axes = style.axes_at(figure, left, at, width, height)
    lengths = [split.base, *split.lengths]
    axes.set_xlim(lengths[0] / 1.12, lengths[-1] * 1.12)
    last = fan.plot(axes, split)
    ticks.length_axis(axes, lengths, width, [split.base])
    trained = split.line.train_length
    if trained and lengths[0] / 1.12 <= trained <= lengths[-1] * 1.12:
        axes.axvline(trained, color="#9a9a9a", linewidth=0.8, zorder=1.5)
    low, high = axes.get_ylim()
    wanted = [at + height * (value - low) / (high - low) for value in last.values()]
    gap = style.extent("Ag", TINY)[1] + 0.02
    for name, y in zip(last, labels.spread(wanted, gap, at + gap / 2, at + height - gap / 2), strict=True):
        color = style.ink(split.line.ink.color) if name == "full" else style.ink(style.GREY)
        style.write(figure, left + width + 0.05, y, name, fontsize=TINY, color=color, va="center_baseline")


def _empty(figure: Figure, left: float, y: float, words: str) -> None:
    style.write(figure, left + 0.1, y, words, fontsize=TINY, color=style.GREY, va="center")


def _keys(shown: list[Split]) -> tuple[list[tuple[str, str]], ...]:
    """What is drawn in each kind of panel, and what it means."""
    base, methods = _base(shown), {split.method == "sliding" for split in shown}
    gain = [
        ("early_token", "early tokens: fewer short contexts"),
        ("beyond_base", f"beyond {base}: tokens further away"),
        ("total", "total: what a plain sweep shows"),
    ]
    end = [
        ("length_effect", "length: more tokens at all"),
        ("content_use", "content: what they say"),
        ("total", "together"),
    ]
    losses = [("base", f"base: windows of {base}")]
    losses += [("cut", f"cut: at most {base} visible")] if False in methods else []
    losses += [("sliding", "sliding: full contexts")] if True in methods else []
    return gain, end, [*losses, ("full", "full: the whole window")]


def _base(shown: list[Split]) -> str:
    bases = {split.base for split in shown}
    return f"{bases.pop():.0f}" if len(bases) == 1 else "W"


def _write_keys(figure: Figure, shown: list[Split], columns: Columns) -> None:
    """Over each column what it shows and how to read it."""
    top = figure.get_size_inches()[1] - 0.68
    headings = (f"Gain over windows of {_base(shown)} (nats)", "At the window's end", "Loss (nats per token)")
    places = (columns.all, columns.end, columns.fan)
    for place, heading, rows in zip(places, headings, _keys(shown), strict=True):
        if place:
            key.write(figure, place[0], top, heading, rows)


def _title(shown: list[Split]) -> str:
    if len(shown) == 1:
        return f"{style.shorten(shown[0].name, 24)} beyond {shown[0].base:.0f} tokens: what changes, and why"
    return "Longer input: relief from short contexts, or use of what is far away?"


def _subtitle(shown: list[Split]) -> str:
    lines = [split.line for split in shown]
    methods = ", ".join(dict.fromkeys(split.method for split in shown if split.method))
    spanned = any(np.isfinite(split.part(name).low).any() for split in shown for name in (*ALL, *END))
    targets = caption.targets([split.only(ALL) for split in shown])
    parts = [*caption.words(lines, "data"), targets, *caption.words(lines, "dtype")]
    parts += [f"method: {methods}" if methods else "", "thin bars: 95 % interval" if spanned else ""]
    return " · ".join(filter(None, parts))


def _foot(shown: list[Split], splits: list[Split]) -> list[str]:
    rows = ["Bars up: better at the longer length; down: worse. Every panel has its own scale."]
    if any(np.isfinite(split.part("content_use").nats).any() for split in shown):
        rows.append("Window's end: the last targets of each window only, so another sum than on the left.")
    if any(split.method == "sliding" for split in shown):
        rows.append("Sliding: early tokens cost the gap between the lines; as far as it shrinks, that is their part.")
    bases = {split.base for split in shown}
    if len(bases) > 1:
        rows.append("W: the base length, where the curves of a row begin.")
    if any(finding.breaks(split).any() for split in shown):
        rows.append("Breaks: tokens further away than the base length at least double the perplexity.")
    trained = sorted({split.line.train_length or 0 for split in shown} - {0})
    if trained:
        whose = f"{trained[0]:.0f} tokens" if len(trained) == 1 else "the model's own"
        rows.append(f"Vertical line: the training length, {whose}.")
    if any(split.failed((*ALL, *END)).any() for split in shown):
        rows.append("Cross: a length that the model could not do.")
    hidden = [split for split in splits if split not in shown and notes.stops(split.once())]
    rows += [f"Not shown: {split.name}: {'; '.join(notes.stops(split.once()))}." for split in hidden]
    short = notes.too_short([split.once() for split in splits])
    return [*rows, short] if short else rows
