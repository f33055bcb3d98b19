"""A model's ladder of contexts, from context.csv and context_summary.csv: losses, best rung and horizon.

A rung stands at the longest context of its targets, `context_max`; in the series that is what `length` says.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lengthbench.plots.scale import Scale
from lengthbench.plots.series import Series
from lengthbench.plots.series import read as read_series


@dataclass(frozen=True, eq=False)
class Ladder:
    full: Series
    """Losses with the text itself as context."""
    swap: Series | None
    """Losses with a stretch of another document in place of all but the nearest tokens."""
    best: float | None
    """Context of the best rung, in tokens."""
    horizon: float | None
    """Smallest context within `epsilon` nats of the best rung, and below its interval."""
    low: float
    high: float
    epsilon: float

    @property
    def nll(self) -> np.ndarray:
        """(n,) loss at each rung, NaN where there is none."""
        return self.full.column("nll")

    @property
    def paired(self) -> bool:
        """Whether the table says how surely each rung is worse than the best, on the same targets."""
        return bool(np.isfinite(self.full.column("above_best_ci_low")).any())

    def band(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) interval of each rung: of its distance to the best where that is known, else of its loss.

        Texts differ more from each other than rungs do, so the second may hide every difference between rungs.
        """
        if not self.paired:
            return self.full.column("ci_low"), self.full.column("ci_high")
        best = self.nll - self.full.column("above_best")
        return best + self.full.column("above_best_ci_low"), best + self.full.column("above_best_ci_high")

    def told(self) -> str:
        """`horizon 256 [128, 512]`; empty where it is not known."""
        if self.horizon is None:
            return ""
        inner = f" [{self.low:.0f}, {self.high:.0f}]" if np.isfinite([self.low, self.high]).all() else ""
        return f"horizon {self.horizon:.0f}{inner}"


def read(tables: dict[str, pd.DataFrame]) -> list[Ladder]:
    """The ladders of `tables["context"]`; where a model has several lengths, the one to the longest."""
    table, summary = tables.get("context"), tables.get("context_summary")
    if table is None or not {"context_max", "length"} <= set(table.columns):
        return []
    conditions = table["condition"] if "condition" in table.columns else "full"
    lines = read_series(table.assign(protocol=conditions, longest=table["length"], length=table["context_max"]))
    lines = [_longest(line) for line in lines]
    found = {line.key: line for line in read_series(summary)}
    swaps = {line.key: line for line in lines if line.protocol == "swap"}
    return [_ladder(line, swaps.get(line.key), found.get(line.key)) for line in lines if line.protocol != "swap"]


def _longest(line: Series) -> Series:
    lengths = line.numbers("longest")
    keep = lengths == np.nanmax(lengths) if np.isfinite(lengths).any() else np.isnan(lengths)
    return replace(line, cells={name: column[keep] for name, column in line.cells.items()})


def _ladder(full: Series, swap: Series | None, summary: Series | None) -> Ladder:
    names = ("best_rung", "horizon", "horizon_low", "horizon_high", "epsilon")
    best, horizon, low, high, epsilon = (float(summary.column(n)[-1]) if summary else np.nan for n in names)
    nll = full.column("nll")
    if not np.isfinite(best) and np.isfinite(nll).any():
        best = float(full.lengths[int(np.nanargmin(np.where(np.isfinite(nll), nll, np.nan)))])
    known = [float(n) if np.isfinite(n) else None for n in (best, horizon)]
    return Ladder(full, swap, known[0], known[1], low, high, epsilon)


def view(ladders: Sequence[Ladder]) -> Scale:
    """The y axis: all up to the best rungs is in view, and of the losses beyond, damage no larger than the gain."""
    shown = [ladder for ladder in ladders if np.isfinite(ladder.nll).any()]
    risen = [nll[: int(np.nanargmin(np.where(np.isfinite(nll), nll, np.nan))) + 1] for nll in (s.nll for s in shown)]
    kept = np.concatenate(risen)
    kept = kept[np.isfinite(kept)]
    spread = max(float(np.ptp(kept)), 0.4)
    ceiling = float(kept.max()) + spread
    lines = [line for ladder in shown for line in (ladder.full, ladder.swap) if line]
    every = np.concatenate([line.column("nll") for line in lines] + [edge for s in shown for edge in s.band()])
    # A wide interval may widen the view, a little.
    near = every[np.isfinite(every) & (every <= ceiling) & (every >= kept.min() - 0.35 * spread)]
    low, high = float(near.min()), float(max(near.max(), kept.max()))
    middle, half = (low + high) / 2, max((high - low) / 2, 0.05)
    return Scale("nll", middle - 1.1 * half, middle + 1.1 * half)


def levels_differ(ladders: Sequence[Ladder]) -> bool:
    """Whether the models lie so far apart that one pair of axes would flatten each."""
    losses = [ladder.nll[np.isfinite(ladder.nll)] for ladder in ladders]
    best = [float(nll.min()) for nll in losses]
    gains = [float(nll[0] - nll.min()) for nll in losses]
    return max(best) - min(best) > 1.5 * max(*gains, 0.3)
