"""Every figure that a run folder has tables for."""

from pathlib import Path

import pandas as pd

from lengthbench.plots import attribution, ladder, perplexity, positions
from lengthbench.plots.save import save

FIGURES = {
    "attribution": (attribution.draw, ("attribution",)),
    "perplexity": (perplexity.draw, ("ppl",)),
    "positions": (positions.draw, ("positions",)),
    "ladder": (ladder.draw, ("context", "context_summary")),
}
"""Name of a figure, what draws it, and the tables it needs."""


def draw(folder: Path) -> list[Path]:
    """Read the CSV files of `folder`, write its plots/*.png and *.svg; a figure without rows is left out."""
    paths = []
    for name, (figure, needs) in FIGURES.items():
        if all((folder / f"{table}.csv").exists() for table in needs):
            tables = {table: pd.read_csv(folder / f"{table}.csv") for table in needs}
            if name == "perplexity" or len(tables[needs[0]]):
                paths += save(figure(tables), folder / "plots", name)
    return paths
