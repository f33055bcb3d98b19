"""Where words go: geometry in inches that keeps labels off each other and off the lines.

spread      labels beside line ends are pushed apart up and down, as little as possible
pack        labels above the top edge are stacked in rows, each with a clear way down to its arrow
free_spot   a label inside the axes takes the place near its point that covers the fewest lines
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Box:
    left: float
    bottom: float
    right: float
    top: float

    def overlaps(self, other: "Box") -> bool:
        return (
            self.left < other.right and other.left < self.right and self.bottom < other.top and other.bottom < self.top
        )

    def count(self, points: np.ndarray) -> int:
        """How many of the points (n, 2) lie inside."""
        x, y = points[:, 0], points[:, 1]
        return int(((x > self.left) & (x < self.right) & (y > self.bottom) & (y < self.top)).sum())


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places at least `gap` apart, in the order of `wanted`, within low..high, moved as little as possible.

    Least squares under an ordering is isotonic regression, solved by pooling neighbours that collide. Where
    low..high has no room for all, they are spaced evenly from end to end.
    """
    if len(wanted) > 1 and gap * (len(wanted) - 1) > high - low:
        gap = (high - low) / (len(wanted) - 1)
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    pools: list[list[float]] = []  # each [sum, count] of wanted places less the gaps below them
    for rank, i in enumerate(order):
        pools.append([wanted[i] - rank * gap, 1])
        while len(pools) > 1 and pools[-2][0] / pools[-2][1] >= pools[-1][0] / pools[-1][1]:
            total, count = pools.pop()
            pools[-1] = [pools[-1][0] + total, pools[-1][1] + count]
    free = [total / count for total, count in pools for _ in range(int(count))]
    highest = high - (len(wanted) - 1) * gap
    placed = [0.0] * len(wanted)
    for rank, i in enumerate(order):
        placed[i] = min(max(free[rank], low), max(low, highest)) + rank * gap
    return placed


def pack(anchors: Sequence[float], widths: Sequence[float], right: float, space: float) -> list[tuple[float, int]]:
    """Left edge and row (0 = lowest) for each label, all ending before `right`.

    A label starts at its anchor, or ends there. From the rightmost anchor to the leftmost, so that the way down
    from a higher row passes left of the labels below. Where no row is clear the highest is taken: the labels never
    touch, only a way down then passes behind one.
    """
    placed: dict[int, tuple[float, int]] = {}
    for i in sorted(range(len(anchors)), key=lambda i: (-anchors[i], i)):
        starts = (min(anchors[i], right - widths[i]), anchors[i] - widths[i])
        spots = [(left, row) for row in range(len(anchors)) for left in starts if left > 0]
        clear = [
            spot
            for spot in spots
            if not any(_blocked(*spot, widths[i], anchors[i], *placed[j], widths[j], anchors[j], space) for j in placed)
        ]
        placed[i] = clear[0] if clear else (starts[0], 1 + max(row for _, row in placed.values()))
    return [placed[i] for i in range(len(anchors))]


def _blocked(left, row, width, anchor, other_left, other_row, other_width, other_anchor, space) -> bool:
    """Whether two labels of one row touch, or one stands in the other's way down; its very edge is clear."""
    if row == other_row:
        return left < other_left + other_width + space and other_left < left + width + space
    if row > other_row:
        return other_left + 0.01 < anchor < other_left + other_width - 0.01
    return left + 0.01 < other_anchor < left + width - 0.01


def free_spot(
    point: tuple[float, float],
    size: tuple[float, float],
    inside: Box,
    lines: np.ndarray,
    taken: Sequence[Box],
) -> Box:
    """The box of `size` near `point` that covers no other box and the fewest of the points (n, 2) of all lines."""
    width, height = size
    best, lowest = None, float("inf")
    for away in (0.09, 0.18, 0.3, 0.45, 0.65, 0.9, 1.2, 1.6, 2.1):
        for left, bottom in (
            (point[0] + away * 0.6, point[1] - height - away),
            (point[0] + away * 0.6, point[1] + away),
            (point[0] + away, point[1] - height / 2),
            (point[0] - width / 2, point[1] - height - away),
            (point[0] - width / 2, point[1] + away),
            (point[0] - width - away * 0.6, point[1] - height - away),
            (point[0] - width - away * 0.6, point[1] + away),
        ):
            box = Box(left, bottom, left + width, bottom + height)
            room = Box(box.left - 0.03, box.bottom - 0.03, box.right + 0.03, box.top + 0.03)
            outside = (
                max(0, inside.left - left)
                + max(0, box.right - inside.right)
                + max(0, inside.bottom - bottom)
                + max(0, box.top - inside.top)
            )
            cost = room.count(lines) + 1000 * sum(room.overlaps(b) for b in taken) + 500 * outside + away
            if cost < lowest:
                best, lowest = box, cost
    assert best is not None
    return best
