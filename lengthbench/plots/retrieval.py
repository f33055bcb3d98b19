"""Where and up to which length a model finds a fact: a map of the exact rate by position and length, from needle.csv.

A map a model and task, each with its finding in words. Hatched: not found more often than by guessing, which is the
same question without the evidence. A cell without a number says why.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lengthbench.plots import caption, maps, reach, shade, style
from lengthbench.plots.search import Search, read

ABOUT = "Retrieval by position and length"


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The figure of `tables["needle"]`; never fails for want of numbers."""
    with style.look():
        every = read(tables.get("needle"))
        searches = maps.shown(every, "exact_rate")
        if not searches:
            return caption.nothing(ABOUT, [search.once() for search in every])
        figure = maps.draw(searches, shade.rate(), _foot(searches), "no better than without the evidence")
        grids, alone = [search.beats for search in searches], reach.label(searches[0], why=False)
        title = reach.title(searches, grids, "find the fact", alone, ABOUT)
        style.headline(figure, title, maps.subtitle(searches, "exact_rate"))
        return figure


def _foot(searches: Sequence[Search]) -> list[str]:
    """What a cell counts, and which controls there are."""
    rows = ["A cell: trials whose whole answer is right. The fact stands once in the input, at that position."]
    if any(search.mode == "generate" for search in searches):
        rows.append("Generated answers count where they are the answer and nothing else." + _contained(searches))
    unknown = [np.isnan(search.beats) & np.isfinite(search.numbers("exact_rate")) for search in searches]
    if any(grid.any() for grid in unknown):
        rows.append("Without a control (the same question without the evidence) a cell is never hatched.")
    oracle = np.concatenate([search.numbers("oracle_exact_rate").ravel() for search in searches])
    if np.isfinite(oracle).any():
        rows.append(f"Given the evidence and the question alone, without other text: {reach.span(oracle)} right.")
    return rows


def _contained(searches: Sequence[Search]) -> str:
    own = [search for search in searches if search.mode == "generate"]
    more = np.concatenate([(s.numbers("contains_rate") - s.numbers("exact_rate")).ravel() for s in own])
    more = more[np.isfinite(more)]
    return (
        f" Counting those that only contain it: up to {100 * more.max():.0f} points more." if (more > 0).any() else ""
    )
