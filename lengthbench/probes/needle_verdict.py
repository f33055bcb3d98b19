"""What a model retrieves, in a sentence: where it beats the prompts without evidence, and up to which length.

A cell counts as retrieved only if its exact rate is above that of `absent` by the paired interval.
"""

from collections.abc import Sequence
from typing import Any


def text(rows: Sequence[dict[str, Any]]) -> str:
    """The sentence of one model from its rows of needle.csv; a part for each task, empty without numbers."""
    parts = []
    for task in dict.fromkeys(row["task"] for row in rows):
        own = [row for row in rows if row["task"] == task]
        said = _task([row for row in own if row["status"] == "ok"])
        beyond = sorted({row["length"] for row in own if row["status"] == "unsupported"})
        if beyond:
            said = "; ".join(filter(None, (said, f"no positions for {_lengths(beyond)}")))
        if said:
            parts.append(f"{task}: {said}")
    return ". ".join(parts)


def _task(rows: Sequence[dict[str, Any]]) -> str:
    kinds: dict[str, list[int]] = {}
    for length in sorted({row["length"] for row in rows}):
        kinds.setdefault(_kind([row for row in rows if row["length"] == length]), []).append(length)
    said = [f"{kind} at {_lengths(lengths)}" for kind, lengths in kinds.items()]
    return "; ".join(said)


def _kind(rows: Sequence[dict[str, Any]]) -> str:
    what = "contains" if rows[0]["mode"] == "generate" else "exact"
    if any(row.get("above_absent") is None for row in rows):
        return f"{_range(what, rows)}, nothing to compare it with,"
    found = [row for row in rows if row["above_absent"]]
    if not found:
        gains = [row for row in rows if (row.get("gain_ci_low") or 0) > 0]
        return "no better than without the evidence, though it lowers the loss," if gains else "retrieves nothing"
    names = [row["position"] for row in sorted(found, key=lambda row: row["depth"] or 0)]
    rate = _range(what, found)
    if len(found) == len(rows):
        return f"retrieves from everywhere ({rate})" if len(rows) > 1 else f"retrieves ({rate})"
    return f"retrieves from {', '.join(names)} only ({rate})"


def _range(what: str, rows: Sequence[dict[str, Any]]) -> str:
    low, high = min(map(_rate, rows)), max(map(_rate, rows))
    return f"{what} {low:.2f}" if low == high else f"{what} {low:.2f} to {high:.2f}"


def _rate(row: dict[str, Any]) -> float:
    return row["exact_rate"] if row["mode"] == "score" else row["contains_rate"]


def _lengths(lengths: Sequence[int]) -> str:
    if len(lengths) > 2:
        return f"{lengths[0]} to {lengths[-1]}"
    return " and ".join(map(str, lengths))
