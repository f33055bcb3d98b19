"""Every figure that a run folder has tables for."""

from pathlib import Path

import pandas as pd

from lengthbench.plots import (
    attribution,
    contrast,
    ladder,
    perplexity,
    positions,
    retrieval,
    retrieval_gain,
    retrieval_positions,
)
from lengthbench.plots.save import save

FIGURES = {
    "attribution": (attribution.draw, ("attribution",)),
    "perplexity": (perplexity.draw, ("ppl",)),
    "positions": (positions.draw, ("positions",)),
    "ladder": (ladder.draw, ("context", "context_summary")),
    "retrieval": (retrieval.draw, ("needle",)),
    "retrieval_positions": (retrieval_positions.draw, ("needle",)),
    "retrieval_gain": (retrieval_gain.draw, ("needle",)),
    "contrast": (contrast.draw, ("ppl", "needle")),
}
"""Name of a figure, what draws it, and the tables it needs."""


def draw(folder: Path) -> list[Path]:
    """Read the CSV files of `folder`, write its plots/*.png and *.svg; a figure without rows is left out."""
    paths = []
    for name, (figure, needs) in FIGURES.items():
        if all((folder / f"{table}.csv").exists() for table in needs):
            tables = {table: pd.read_csv(folder / f"{table}.csv") for table in needs}
            if name == "perplexity" or all(_has(name, rows) for rows in tables.values()):
                paths += save(figure(tables), folder / "plots", name)
    return paths


def _has(name: str, rows: pd.DataFrame) -> bool:
    """Whether there is anything to draw; text that was generated has no losses to gain."""
    return len(rows) > 0 and (name != "retrieval_gain" or bool(rows["evidence_gain"].notna().any()))
