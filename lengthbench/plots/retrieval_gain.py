"""How much the evidence helps, for models too small to give the answer: nats by position and length, from needle.csv.

The gain is the loss of the answer where filler stands in the evidence's place, less the loss with the evidence: blue
where the evidence helps, orange where it harms, hatched where the interval includes zero.
"""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lengthbench.plots import caption, maps, reach, shade, style
from lengthbench.plots.search import read

ABOUT = "What the evidence is worth"


def draw(tables: dict[str, pd.DataFrame]) -> Figure:
    """The figure of `tables["needle"]`; never fails for want of numbers."""
    with style.look():
        every = read(tables.get("needle"))
        searches = maps.shown(every, "evidence_gain")
        if not searches:
            return caption.nothing(ABOUT, [search.once() for search in every])
        scale = shade.gain(searches)
        foot = ["A cell: the loss of the answer without the evidence, less the loss with it, in nats. Blue: it helps."]
        if any((np.abs(search.numbers("evidence_gain")) > scale.limit).any() for search in searches):
            foot.append(f"Values beyond {scale.limit:g} have the last shade.")
        intervals = [np.isnan(s.gains) & np.isfinite(s.numbers("evidence_gain")) for s in searches]
        if any(grid.any() for grid in intervals):
            foot.append("A cell without an interval is never hatched.")
        foot += [f"Not shown: {search.name}: no gain in the table." for search in every if search not in searches]
        figure = maps.draw(searches, scale, foot, "95 % interval includes 0")
        alone = reach.gain(searches[0], why=False)
        title = reach.title(
            searches, [s.gains for s in searches], "use the evidence", alone, f"{ABOUT}, by position and length"
        )
        style.headline(figure, title, maps.subtitle(searches, "evidence_gain"))
        return figure
