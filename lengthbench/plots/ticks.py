"""Ticks with plain numbers: every length on a log2 axis, round values on a log axis."""

import math
from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter

from lengthbench.plots import style


def plain(value: float, _place: int | None = None) -> str:
    """A tick: 4, 4.25, 1,000, without needless digits."""
    return style.power(value, 0) if abs(value) >= 1e7 else f"{round(value, 6):,.10g}"


def alike(values: Sequence[float]) -> Callable[[float, int | None], str]:
    """Ticks close together get equally many decimals: 4.0, 4.1."""
    if len(values) < 2 or max(values) > 2 * min(values):
        return plain
    decimals = max(len(plain(v).partition(".")[2]) for v in values)
    return lambda value, _place=None: f"{value:,.{decimals}f}"


def alike_in_step(values: Sequence[float]) -> Callable[[float, int | None], str]:
    """All ticks of an axis get the decimals of the one that needs most: 1.30, 1.35."""
    decimals = max((len(plain(v).partition(".")[2]) for v in values), default=0)
    return lambda value, _place=None: f"{value:,.{decimals}f}"


def signed(values: Sequence[float]) -> Callable[[float, int | None], str]:
    """Ticks of differences, equally many decimals and a sign: −0.02, 0, +0.02."""
    written = alike_in_step(values)

    def write(value: float, _place: int | None = None) -> str:
        words = written(abs(value), None)
        return "0" if not words.strip("0.") else ("−" if value < 0 else "+") + words

    return write


def few() -> MaxNLocator:
    """About four round ticks, for small panels."""
    return MaxNLocator(4, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3)


def slot_axis(axes: Axes, lengths: Sequence[float], width: float) -> None:
    """An x axis `width` inches wide on which each length takes 1, whatever lies between; labels where there is room."""
    spare = max(0, 4 - len(lengths)) / 2  # a single length would be a wall, not a bar
    axes.set_xlim(-0.6 - spare, len(lengths) - 0.2 + spare)
    room = width / (len(lengths) + 0.4 + 2 * spare)
    widest = max(style.extent(f"{n:.0f}", style.SMALL)[0] for n in lengths) + 0.1
    step = math.ceil(widest / room)
    shown = range((len(lengths) - 1) % step, len(lengths), step)
    axes.xaxis.set_major_locator(FixedLocator(list(shown)))
    axes.xaxis.set_minor_locator(FixedLocator([i for i in range(len(lengths)) if i not in shown]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{lengths[round(x)]:.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def length_axis(axes: Axes, lengths: Sequence[float], width: float, first: Sequence[float] = ()) -> None:
    """A log2 x axis `width` inches wide: a tick at every length, a label where there is room.

    `first` are labelled before all others, then both ends, then powers of two.
    """
    known = sorted(set(lengths))
    axes.set_xscale("log", base=2)
    low, high = (math.log2(edge) for edge in axes.get_xlim())

    def rank(length: float) -> tuple[bool, bool, bool, float]:
        return (
            length not in first,
            length not in (known[0], known[-1]),
            not math.log2(length).is_integer(),
            -length,
        )

    taken: list[tuple[float, float]] = []
    shown = []
    for length in sorted(known, key=rank):
        middle = (math.log2(length) - low) / (high - low) * width
        half = style.extent(f"{length:.0f}", style.SMALL)[0] / 2 + 0.05
        if all(middle + half <= a or middle - half >= b for a, b in taken):
            taken.append((middle - half, middle + half))
            shown.append(length)
    axes.xaxis.set_major_locator(FixedLocator(sorted(shown)))
    axes.xaxis.set_minor_locator(FixedLocator([n for n in known if n not in shown]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers for a log axis from `low` to `high`: four or more of 1, 2, 5, 10 ... where the range has them."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 2, 3, 5), (1, 1.5, 2, 3, 4, 5, 7)):
        ticks = [s * 10.0**p for p in powers for s in steps if low <= s * 10.0**p <= high]
        if len(ticks) >= 4:
            return ticks[:: math.ceil(len(ticks) / 7)]
    return [t for t in MaxNLocator(5).tick_values(low, high) if low <= t <= high]
