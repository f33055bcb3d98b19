"""A report as one JSON document."""

import math
from typing import Any

from lengthbench.check.gate import Report
from lengthbench.check.judge import Judgement
from lengthbench.check.tables import ROLE, TABLES


def of(report: Report) -> dict[str, Any]:
    return {
        "run": str(report.run),
        "baseline": str(report.baseline),
        "verdict": report.verdict,
        "exit_code": report.code,
        "rules": [str(rule) for rule in report.rules],
        "counts": report.counts,
        "notes": list(report.notes),
        "cells": [_cell(j) for j in report.judgements],
    }


def _cell(j: Judgement) -> dict[str, Any]:
    """The cell's key and what became of it; `change` is a fraction of the baseline where `relative`."""
    table = TABLES[j.cell.table]
    return {
        "table": j.cell.table,
        **{column: j.cell.row[column] for column in (*ROLE, *table.place, *table.settings)},
        "metric": j.metric,
        "verdict": j.verdict,
        "reason": j.reason,
        "rule": str(j.rule) if j.rule else None,
        "relative": j.rule.relative if j.rule else None,
        "baseline": _finite(j.baseline),
        "current": _finite(j.current),
        "change": _finite(j.change),
        "ci_low": _finite(j.low),
        "ci_high": _finite(j.high),
        "basis": j.basis,
    }


def _finite(value: float | None) -> float | None:
    """JSON knows no infinity."""
    return value if value is None or math.isfinite(value) else None
