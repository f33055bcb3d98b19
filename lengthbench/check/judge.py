"""Verdicts: ok, better, worse, missing, not comparable, nonfinite.

A cell is worse only if its change passes the tolerance and the paired interval of the change lies beyond it as a
whole. Where nothing can be paired the point decides, and the judgement says so.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lengthbench import stats
from lengthbench.check.cell import NO_NUMBERS, Cell, Sums
from lengthbench.check.pair import Pair
from lengthbench.check.rules import Rule
from lengthbench.check.tables import TABLES

FAILING = ("worse", "missing", "nonfinite")
"""Verdicts that fail the gate."""
OPEN = "not comparable"


@dataclass(frozen=True)
class Judgement:
    cell: Cell
    """Of the baseline; of the run where the baseline has none."""
    metric: str
    verdict: str
    reason: str = ""
    rule: Rule | None = None
    """None: nothing but presence and status was checked."""
    baseline: float | None = None
    current: float | None = None
    change: float | None = None
    """current - baseline in the metric's unit, or as a fraction of the baseline where the rule is relative."""
    low: float | None = None
    high: float | None = None
    """Ends of the change's paired 95 % interval."""
    basis: str = ""
    """`paired, 6 blocks`, `unpaired`, ...; empty where nothing was compared."""

    @property
    def name(self) -> str:
        return f"{self.cell} {self.metric}"

    @property
    def said(self) -> str:
        """The finding in words: `ppl 9.41 -> 9.71, +3.2 % [+3.1 %, +3.3 %], tolerated 1 %`."""
        if self.change is None or self.rule is None:
            return self.reason
        parts = [f"{self.metric} {number(self.baseline)} -> {number(self.current)}", self.moved, self.tolerated]
        return ", ".join(filter(None, [*parts, "" if self.basis.startswith("paired") else self.basis, self.reason]))

    @property
    def moved(self) -> str:
        """The change with its interval."""
        if self.change is None or self.rule is None:
            return ""
        point, low, high = (signed(x, self.rule.relative) for x in (self.change, self.low, self.high))
        return f"{point} [{low}, {high}]" if low and high else point

    @property
    def tolerated(self) -> str:
        if self.rule is None:
            return ""
        amount = f"{100 * self.rule.amount:g} %" if self.rule.relative else f"{self.rule.amount:g}"
        return f"tolerated {amount}"


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.5g}"


def signed(value: float | None, relative: bool) -> str:
    if value is None:
        return ""
    value = 0.0 if abs(value) < 1e-6 else value
    return f"{100 * value:+.3g} %" if relative else f"{value:+.3g}"


def judge(pair: Pair, rules: Sequence[Rule], seed: str) -> list[Judgement]:
    """One judgement for each rule that applies to the cell, or one without a rule."""
    cell, other = pair.baseline, pair.current
    own = [r for r in rules if measures(r, cell)]
    main, column = TABLES[cell.table].value, TABLES[cell.table].value
    if own:
        main, column = own[0].name, own[0].metric.column
    verdict, reason = _before_numbers(pair)
    if verdict or other is None:
        return [Judgement(cell, main, verdict, reason, None, cell.number(column))]
    if not own:
        why = "no rule: only that it is there was checked"
        return [Judgement(cell, column, "ok", why, None, cell.number(column), other.number(column))]
    return [_compared(cell, other, rule, seed) for rule in own]


def measures(rule: Rule, cell: Cell) -> bool:
    """Whether the rule applies to the cell; one without numbers is not measured by what it lacks."""
    there = cell.status != "ok" or cell.number(rule.metric.column) is not None
    return there and rule.applies(cell.table, cell.row.get("component", ""), cell.row.get("condition", ""))


def stray(cell: Cell) -> Judgement | None:
    """A cell that the baseline lacks is no reason to fail, unless its numbers are not finite."""
    return Judgement(cell, TABLES[cell.table].value, "nonfinite", cell.flaw) if cell.flaw else None


def _before_numbers(pair: Pair) -> tuple[str, str]:
    """Verdict and reason of what needs no number; empty if both sides have one."""
    cell, other = pair.baseline, pair.current
    if other is None:
        return "missing", pair.why_missing
    if pair.differing:
        return OPEN, ", ".join(pair.differing)
    if other.flaw:
        return "nonfinite", other.flaw
    now = f"status {other.status}" + (f": {other.detail}" if other.detail else "")
    if cell.status in NO_NUMBERS:
        if other.status in NO_NUMBERS:
            return "ok", f"{cell.status} on both sides" if cell.status == other.status else f"was {cell.status}, {now}"
        return ("ok", f"was {cell.status}, has numbers now") if other.status == "ok" else ("missing", now)
    if cell.status != "ok":
        return OPEN, f"the baseline has status {cell.status}, so there is nothing to compare with"
    return ("", "") if other.status == "ok" else ("missing", now)


def _compared(cell: Cell, other: Cell, rule: Rule, seed: str) -> Judgement:
    old, new = cell.number(rule.metric.column), other.number(rule.metric.column)
    if new is None or math.isnan(new):
        what = "is empty" if new is None else "is no number"
        return Judgement(cell, rule.name, "nonfinite", f"{rule.metric.column} {what}", rule, old)
    if old is None or math.isnan(old) or (old == 0 and rule.relative and rule.name != "ppl"):
        why = "is 0: give an absolute tolerance" if old == 0 else "is no number"
        return Judgement(cell, rule.name, OPEN, f"{rule.metric.column} of the baseline {why}", rule, old, new)
    if math.isinf(old) and not rule.relative:
        return Judgement(cell, rule.name, OPEN, "its baseline overflows; compare nll", rule, old, new)
    sums = cell.sums.get(rule.metric.sums), other.sums.get(rule.metric.sums)
    low = high = None
    if sums[0] and sums[1]:
        difference, found, basis = _paired(sums[0], sums[1], cell.table, seed)
        if found.low is not None and found.high is not None:
            low, high = rule.change(found.low, old), rule.change(found.high, old)
    else:
        # Perplexities are compared by their logarithm, which never overflows.
        column = "nll" if rule.name == "ppl" else rule.metric.column
        difference, basis = (other.number(column) or 0.0) - (cell.number(column) or 0.0), "unpaired"
    change = rule.change(difference, old)
    if math.isnan(change):
        return Judgement(cell, rule.name, OPEN, f"the change of {rule.metric.column} has no value", rule, old, new)
    ends = [change] if low is None or high is None else [change, low, high]
    verdict = "ok"
    if all(rule.passed(end) for end in ends):
        verdict = "worse"
    elif all(rule.passed_upwards(end) for end in ends):
        verdict = "better"
    return Judgement(cell, rule.name, verdict, "", rule, old, new, change, low, high, basis)


def _paired(old: Sums, new: Sums, table: str, seed: str) -> tuple[float, stats.Interval, str]:
    """Mean difference over the same units, its interval, and what it rests on."""
    groups: dict[str, list[tuple[str, ...]]] = defaultdict(list)
    for unit in sorted(old):
        groups[unit[0]].append(unit)
    few = len(groups) < stats.FEW
    parts = [[unit] for unit in sorted(old)] if few else list(groups.values())
    difference = np.array([math.fsum(new[u][0] - old[u][0] for u in part) for part in parts])
    n = np.array([math.fsum(old[u][1] for u in part) for part in parts])
    found = stats.interval(difference, n, seed)
    what = "trials" if table == "needle" else "blocks" if few else "documents"
    basis = f"paired, {len(parts)} {what}"
    if found.low is None:
        basis = f"only {len(parts)} {what}, no interval: the point decides"
    return stats.ratio(difference, n), found, basis
