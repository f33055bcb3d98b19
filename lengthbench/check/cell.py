"""A cell: one row of a summary, with the sums it was made of, if those are kept."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from lengthbench.check.tables import ROLE, SETTINGS, TABLES, Row

Role = tuple[str, str, str]
"""model, scheme, scheme_params"""
Sums = dict[tuple[str, ...], tuple[float, float]]
"""Unit (document and block, or trial) -> numerator, denominator."""
NO_NUMBERS = ("unsupported", "too_short", "clipped")
"""Statuses that follow from the model's positions and the text: equal on both sides, nothing went wrong."""


@dataclass(frozen=True)
class Cell:
    table: str
    row: Row
    sums: Mapping[str, Sums] = field(default_factory=dict)
    """By what Metric.sums names; empty: only the row is known."""

    @property
    def role(self) -> Role:
        model, scheme, params = (self.row[column] for column in ROLE)
        return model, scheme, params

    @property
    def place(self) -> tuple[str, ...]:
        return (self.table, *(self.row[column] for column in TABLES[self.table].place))

    @property
    def settings(self) -> dict[str, str]:
        """Everything that must be the partner's too, and that the table has."""
        table = TABLES[self.table]
        return {c: self.row[c] for c in (*table.settings, *SETTINGS) if c in self.row}

    @property
    def status(self) -> str:
        return self.row.get("status") or "ok"

    @property
    def detail(self) -> str:
        return self.row.get("detail", "")

    def number(self, column: str) -> float | None:
        """What stands in the column; None where it is empty, NaN where it is no number."""
        text = self.row.get(column, "")
        if not text:
            return None
        try:
            return float(text)
        except ValueError:
            return math.nan

    @property
    def flaw(self) -> str:
        """Why an ok cell has no number to compare: `nll is empty`, `ppl is nan`; empty if it has.

        An infinite perplexity is none if exp(nll) overflows.
        """
        if self.status == "nonfinite":
            return f"status nonfinite: {self.detail}".removesuffix(": ")
        if self.status != "ok":
            return ""
        for column in (TABLES[self.table].value, "nll_sum", "ppl"):
            if column not in self.row:
                continue
            value = self.number(column)
            nll = self.number("nll")
            overflows = column == "ppl" and value == math.inf and nll is not None and 709 < nll < math.inf
            if value is None:
                return f"{column} is empty"
            if not math.isfinite(value) and not overflows:
                return f"{column} is {self.row[column]}"
        broken = [name for name, sums in self.sums.items() if not all(math.isfinite(a) for a, _ in sums.values())]
        return f"a sum of {broken[0]} is not finite" if broken else ""

    def __str__(self) -> str:
        """`reference:alibi nonoverlapping 512`, as a person would point at it."""
        model, scheme, params = self.role
        named = model if scheme in model else f"{model} [{scheme}]"
        table = TABLES[self.table]
        shown = [self.row[c] for c in (*table.settings[:1], *table.place) if self.row[c] not in ("", "full")]
        if self.table == "context":
            shown = [f"context {self.row['context_max']} of {self.row['length']}"]
            shown += ["swap"] if self.row["condition"] == "swap" else []
        return " ".join([named, *([params] if params and model != f"reference:{scheme}" else []), *shown])
