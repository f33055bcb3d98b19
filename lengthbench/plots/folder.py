"""Every figure that a run folder has tables for."""

from pathlib import Path

import pandas as pd

from lengthbench.plots import perplexity, positions
from lengthbench.plots.save import save


def draw(folder: Path) -> list[Path]:
    """Read the CSV files of `folder`, write its plots/*.png and *.svg."""
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("ppl", "positions")}
    paths = save(perplexity.draw(tables), folder / "plots", "perplexity")
    if len(tables["positions"]):
        paths += save(positions.draw(tables), folder / "plots", "positions")
    return paths
