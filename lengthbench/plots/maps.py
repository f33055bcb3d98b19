"""Maps of several searches on one sheet, with their key: shades, hatching and the training length."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from lengthbench.plots import caption, reach, sheet, style, tiles
from lengthbench.plots.search import Search
from lengthbench.plots.shade import Shade
from lengthbench.plots.sheet import Sheet

LEFT, GAP, RIGHT, ROW = 0.74, 0.24, 0.16, 0.17
NARROW = 0.34
"""Inches: cells are wider wherever fewer panels in a row allow it."""
KEY = 0.3
STEPS = 5


def shown(searches: Sequence[Search], column: str) -> list[Search]:
    """Those with a number in the column; of the others, where any has one, those whose map says why they have none."""
    known = [bool(np.isfinite(search.numbers(column)).any()) for search in searches]
    failed = [not np.isin(search.status.astype(str), ("ok", "")).any() for search in searches]
    return [s for s, number, why in zip(searches, known, failed, strict=True) if any(known) and (number or why)]


def draw(searches: Sequence[Search], shade: Shade, foot: list[str], hatched: str) -> Figure:
    """A map a search; `hatched` says what the hatching means."""
    n_columns = max(len(search.lengths) for search in searches)
    n_rows = max(len(search.positions) for search in searches)
    columns, beside = _columns(searches, n_columns), _beside(searches)
    left, gap = beside, GAP if _same(searches, "positions") else beside
    cell = max(0.19, min(0.46 if len(searches) == 1 else 0.42, (2.6 if len(searches) == 1 else 1.5) / n_rows))
    height = cell * n_rows
    told = [shade.finding(search) for search in searches]
    if len(searches) == 1:  # the finding is the title
        told = ["; ".join(reach.reasons(searches[0]))]
    foot = [*foot, *_marks(searches, shade.column)]
    at = {"left": left, "gap": gap, "right": RIGHT}
    made = sheet.build(told, columns, height, ROW * len(foot) + 0.08, KEY, **at)
    how = _fit(searches, shade, made.width / n_columns, cell)
    shared = _same(searches, "lengths")
    for i, (search, (x, y)) in enumerate(zip(searches, made.places, strict=True)):
        axes = style.axes_at(made.figure, x, y, made.width, height)
        tiles.plot(axes, search, shade, how, made.width, height)
        first = i % columns == 0 or not _same(searches, "positions")
        tiles.axis(axes, search, made.width, height, (made.lowest[i] or not shared, first))
        made.name(i, search.name if len(searches) > 1 else "", style.ink(search.line.ink.color))
    _key(made, searches, shade, hatched)
    words = {"fontsize": style.SMALL, "color": style.GREY}
    middle = (left + sheet.WIDTH - RIGHT) / 2
    style.write(made.figure, middle, made.bottom - 0.4, "length (tokens fed)", ha="center", **words)
    top = max(y for _, y in made.places) + height
    center, name = (made.bottom + top) / 2, "where the evidence stands"
    name = name if style.extent(name, style.SMALL)[0] < top - made.bottom + 0.3 else "position"
    side = {"rotation": 90, "ha": "center", "va": "center"}
    style.write(made.figure, 0.13, center, name, **side, **words)
    caption.write_foot(made.figure, foot, 0.14, 0.1, ROW)
    return made.figure


def _columns(searches: Sequence[Search], n_lengths: int) -> int:
    """Panels in a row, fewer where cells would get narrow."""
    wanted = sheet.columns(len(searches), len({search.line.key for search in searches}), most=4)
    while wanted > 1 and sheet.width(wanted, LEFT, GAP, RIGHT) / n_lengths < NARROW:
        wanted -= 1
    return wanted


def _beside(searches: Sequence[Search]) -> float:
    """Inches left of a map: the widest name of a position and the title of the axis."""
    return 0.34 + max(style.extent(name, style.SMALL)[0] for search in searches for name in search.positions)


def _same(searches: Sequence[Search], what: str) -> bool:
    return len({tuple(getattr(search, what)) for search in searches}) == 1


def _fit(searches: Sequence[Search], shade: Shade, width: float, height: float) -> tiles.Fit:
    values = np.concatenate([search.numbers(shade.column).ravel() for search in searches])
    trials = np.concatenate([search.numbers("n_trials").ravel() for search in searches])
    values, trials = np.unique(values[np.isfinite(values)]), np.unique(trials[np.isfinite(trials)])
    cells, units = ([shade.words(v, unit) for v in values.tolist()] for unit in (False, True))
    return tiles.fit(cells, units, [f"n={n:.0f}" for n in trials], width, height)


def _key(made: Sheet, searches: Sequence[Search], shade: Shade, hatched: str) -> None:
    """In a row under the subtitle: the ramp of shades, a hatched cell, the line of the training length."""
    figure, x = made.figure, 0.14
    y = figure.get_size_inches()[1] - 0.74
    low, high = (f"−{shade.limit:g}", f"+{shade.limit:g} nats") if shade.signed else ("0", "100 % right")
    x = _write(figure, x, y, low) + 0.06
    for value in np.linspace(-shade.limit if shade.signed else 0.0, shade.limit, STEPS).tolist():
        _patch(figure, x, y, 0.17, facecolor=shade.color(value), edgecolor="#b5b5b5", linewidth=0.4)
        x += 0.17
    x = _write(figure, x + 0.06, y, high) + 0.24
    if any(shade.plain(search).any() for search in searches):
        _patch(figure, x, y, 0.24, facecolor=shade.color(0.0), edgecolor="#9c9c9c", hatch="//////", linewidth=0.4)
        x = _write(figure, x + 0.3, y, hatched) + 0.24
    marked = [search for search in searches if tiles.trained_at(search) is not None]
    if marked:
        style.stroke(figure, [x, x], [y - 0.03, y + 0.13], color=style.INK, linewidth=2.2)
        trained = caption.trained([search.line for search in marked])
        _write(figure, x + 0.07, y, f"trained at {trained[0]:.0f}" if len(trained) == 1 else "training length")


def _write(figure: Figure, x: float, y: float, words: str) -> float:
    """Returns where the words end."""
    style.write(figure, x, y, words, fontsize=style.SMALL, color=style.GREY)
    return x + style.extent(words, style.SMALL)[0]


def _patch(figure: Figure, x: float, y: float, width: float, **look) -> None:
    figure.add_artist(Rectangle((x, y - 0.02), width, 0.14, **look)).set_transform(figure.dpi_scale_trans)


def _marks(searches: Sequence[Search], column: str) -> list[str]:
    """What the maps cannot say about training lengths and cells without a number."""
    rows = []
    outside = [search for search in searches if search.line.train_length and tiles.trained_at(search) is None]
    trained = caption.trained([search.line for search in outside])
    if outside:
        lengths = ", ".join(f"{n:.0f}" for n in trained)
        who = "Trained" if len(outside) == len(searches) else f"{', '.join(search.name for search in outside)}: trained"
        rows.append(f"{who} at {lengths}, outside the lengths shown.")
    failed = [~np.isin(search.status.astype(str), ("ok", "")) for search in searches]
    if any(grid.any() for grid in failed):
        rows.append("Grey: no number, and why.")
    if any((np.isnan(s.numbers(column)) & ~grid).any() for s, grid in zip(searches, failed, strict=True)):
        rows.append("White: not measured.")
    return rows


def subtitle(searches: Sequence[Search], column: str, each: str = "a cell") -> str:
    """Task, mode, text, number of trials, number format."""
    lines = [search.line for search in searches]
    parts = [
        f"task{'' if len(tasks) == 1 else 's'} {', '.join(tasks)}" for tasks in [_words(searches, "task")] if tasks
    ]
    modes = _words(searches, "mode")
    parts += [{"score": "answers scored, not generated", "generate": "answers generated"}.get(m, m) for m in modes]
    parts += [*caption.words(lines, "data"), trials(searches, column, each), *caption.words(lines, "dtype")]
    return " · ".join(filter(None, parts))


def trials(searches: Sequence[Search], column: str, each: str) -> str:
    """How many trials stand behind `each` number."""
    known = [s.numbers("n_trials")[np.isfinite(s.numbers(column))] for s in searches]
    counts = np.unique(np.concatenate(known))
    counts = counts[np.isfinite(counts)]
    if not len(counts):
        return ""
    span = f"{counts[0]:.0f}" if len(counts) == 1 else f"{counts[0]:.0f} to {counts[-1]:.0f}"
    return f"{span} trials {each}"


def _words(searches: Sequence[Search], what: str) -> list[str]:
    return list(dict.fromkeys(word for s in searches if (word := getattr(s, what))))
