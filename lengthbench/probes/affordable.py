"""How many groups of targets a wanted interval width costs, from a short pilot.

    groups = pilot x (width of the pilot / wanted width)^2

The intervals meant are those that decide the horizon: of the difference to the best rung, on the rungs within 0.1
nat of it. A rung that broke is far above, however wide its interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lengthbench.errors import UserError

PILOT = 8
"""Groups of the pilot."""
NEAR = 0.1
"""Nats above the best rung within which a rung can be the horizon."""
FEWEST = 5


@dataclass(frozen=True)
class Choice:
    groups: int
    text: str
    """What was found and what is chosen, for a person."""


def announce(width: float) -> str:
    """Raises UserError for a width that cannot be asked for."""
    if not width > 0:
        raise UserError(f"--affordable {width}: it is the wanted width of an interval in nats, for example 0.02")
    return f"a pilot of {PILOT} groups shows how many an interval {width:g} nat wide needs"


def choose(rows: Sequence[dict[str, Any]], width: float, epsilon: float) -> Choice:
    """rows: context.csv of the pilot, all models; the model that needs most decides."""
    found: dict[tuple, float] = {}
    groups = 0
    for row in rows:
        low, high = row.get("above_best_ci_low"), row.get("above_best_ci_high")
        if row["status"] == "ok" and low is not None and high is not None and row["above_best"] <= max(NEAR, epsilon):
            key = (row["model"], row["scheme"], row["scheme_params"])
            found[key] = max(found.get(key, 0.0), high - low)
            groups = max(groups, row["n_groups"])
    if not found:
        raise UserError("--affordable: the pilot has no interval to go by; give more text or a shorter --length")
    key = max(found, key=lambda k: found[k])
    needed = max(FEWEST, math.ceil(groups * (found[key] / width) ** 2))
    text = (
        f"pilot: {found[key]:.3g} nat wide with {groups} groups ({key[0]}); {width:g} nat needs {needed} groups, "
        "as far as the text has them"
    )
    return Choice(needed, text)
