"""The words around a figure: title, subtitle, and the lines at its foot."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from lengthbench.plots import notes, style
from lengthbench.plots.grid import Grid
from lengthbench.plots.scale import Scale
from lengthbench.plots.series import Series


def title(lines: Sequence[Series], y: Scale) -> str:
    """A plain sentence that says what is shown."""
    what = "Perplexity" if y.log else "Bits per byte"
    lengths = sorted({float(n) for line in lines for n in line.lengths})
    names = list(dict.fromkeys(line.name for line in lines))
    who = style.shorten(names[0], 16) if len(names) == 1 else f"{len(names)} models"
    if len(lengths) == 1:
        return f"{what} of {who} at length {lengths[0]:.0f}"
    beyond = trained(lines)
    if len(beyond) == 1 and beyond[0] < lengths[-1]:
        return f"{what} of {who} within and beyond the {beyond[0]:.0f} tokens of training"
    return f"{what} of {who} from {lengths[0]:.0f} to {lengths[-1]:.0f} tokens"


def subtitle(lines: Sequence[Series], y: Scale) -> str:
    """Text, number of targets, number format, windows, and what the shading is."""
    parts = [*words(lines, "data"), targets(lines), *words(lines, "dtype")]
    protocols = list(dict.fromkeys(line.protocol for line in lines if line.protocol))
    parts += [f"{protocols[0]} windows"] if len(protocols) == 1 else []
    shaded = any(np.isfinite(line.column("ci_low")).any() for line in lines)
    parts += ["shaded: 95 % interval"] if shaded else []
    parts += [] if y.log else ["several tokenizers, so per byte"]
    return " · ".join(filter(None, parts))


def words(lines: Sequence[Series], column: str) -> list[str]:
    """The different entries of a column of text, joined; none where there is none."""
    found = dict.fromkeys(style.shorten(word, 40) for line in lines for word in line.words(column))
    return [", ".join(found)] if found else []


def targets(lines: Sequence[Series]) -> str:
    counts = {float(n) for line in lines for n in line.column("n_scored") if math.isfinite(n)}
    if not counts:
        return ""
    low, high = f"{min(counts):,.0f}", f"{max(counts):,.0f}"
    return f"{high} targets" if low == high else f"{low} to {high} targets"


def trained(lines: Sequence[Series]) -> list[float]:
    """The different training lengths, ascending."""
    return sorted({line.train_length for line in lines if line.train_length})


def on_line(line: Series, y: Scale) -> tuple[list[float], list[float]] | None:
    """The point of the drawn line at its training length; None where the line does not reach it or leaves the view."""
    values, lengths = line.column(y.column), line.lengths
    keep = np.isfinite(values) & (values > 0)
    own = line.train_length
    if not own or not keep.any() or not lengths[keep].min() <= own <= lengths[keep].max():
        return None
    heights = np.log(values[keep]) if y.log else values[keep]
    height = float(np.interp(math.log2(own), np.log2(lengths[keep]), heights))
    value = math.exp(height) if y.log else height
    return ([own], [value]) if value <= y.high else None


def foot(lines: Sequence[Series], y: Scale, listed: bool = True) -> list[str]:
    """What the axes cannot say, a line each; the key of the protocols is written as a line that starts with `=`.

    Models without any value are `listed` where they have no panel to say so.
    """
    rows = []
    protocols = [p for p in style.DASHES if any(line.protocol == p for line in lines)]
    if len(protocols) > 1:
        rows.append("=" + " ".join(protocols))
    several = trained(lines)
    if several and not listed:
        rows.append("Vertical line: the length it was trained at.")
    elif len(several) > 1:
        rows.append("Bars on the lines mark each model's training length.")
    elif several and not in_view(several[0], lines):
        rows.append(f"Trained at {several[0]:.0f}, outside the lengths shown.")
    for line in lines:
        if listed and not np.isfinite(line.column(y.column)).any() and notes.stops(line):
            rows.append(f"Not shown: {notes.label(line, lines)}: {'; '.join(notes.stops(line))}.")
    short = notes.too_short(lines)
    return [*rows, short] if short else rows


def in_view(length: float, lines: Sequence[Series]) -> bool:
    """Whether the x axis reaches `length`: it lies within a doubling of the measured ones, if those are several."""
    known = {float(n) for line in lines for n in line.lengths}
    return length in known or (len(known) > 1 and min(known) / 2 <= length <= max(known) * 2)


def write_foot(figure: Figure, rows: list[str], left: float, bottom: float, row: float) -> None:
    """The rows from the lowest up, in grey; a key shows a stretch of each kind of line."""
    for i, words in enumerate(reversed(rows)):
        x, y = left, bottom + row * i
        if not words.startswith("="):
            room = figure.get_size_inches()[0] - left - 0.1
            style.write(figure, x, y, style.fit(words, room, style.SMALL), fontsize=style.SMALL, color=style.GREY)
            continue
        for protocol in words[1:].split():
            dash = style.DASHES[protocol]
            style.stroke(figure, [x, x + 0.32], [y + 0.045] * 2, color=style.GREY, linewidth=1.5, linestyle=dash)
            style.write(figure, x + 0.38, y, protocol, fontsize=style.SMALL, color=style.GREY)
            x += 0.6 + style.extent(protocol, style.SMALL)[0]


def axis_titles(made: Grid, x: str, y: str) -> None:
    """One title for the x axes and one for the y axes of all panels."""
    words = {"fontsize": style.SMALL, "color": style.GREY, "ha": "center"}
    style.write(made.figure, (made.left + made.right) / 2, made.bottom - 0.4, x, **words)
    style.write(made.figure, 0.17, (made.bottom + made.top) / 2, y, rotation=90, va="center", **words)


def nothing(about: str, lines: Sequence[Series]) -> Figure:
    """A figure that says that there is nothing to draw, and why."""
    reasons = [f"{line.name}: {'; '.join(notes.stops(line))}" for line in lines if notes.stops(line)]
    short = notes.too_short(lines)
    reasons += [short] if short else []
    figure = style.new_figure(6.0, 1.1 + 0.17 * max(1, len(reasons)))
    style.headline(figure, f"{about}: no value to draw", "No row of the table has a finite number.")
    for i, words in enumerate(reasons):
        at = 0.3 + 0.17 * (len(reasons) - 1 - i)
        style.write(figure, 0.14, at, style.fit(words, 5.7, style.SMALL), fontsize=style.SMALL)
    return figure
