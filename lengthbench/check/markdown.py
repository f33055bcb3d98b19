"""A job summary in Markdown: the verdict, what fails, what moved, and the notes."""

from collections.abc import Sequence

from lengthbench.check.gate import Report
from lengthbench.check.judge import FAILING, OPEN, Judgement, number

MOST = 200
"""Rows of a table; a job summary has a limit of 1 MiB."""


def text(report: Report) -> str:
    counts = ", ".join(f"{n} {verdict}" for verdict, n in report.counts.items())
    lines = [f"## lengthbench check: {report.verdict}", ""]
    lines += [f"{_safe(str(report.run))} against {_safe(str(report.baseline))}: {counts}. "
              f"Tolerated: {', '.join(map(str, report.rules))}.", ""]  # fmt: skip
    lines += _table(report.of(*FAILING, OPEN, "better"))
    fine = report.of("ok")
    if fine:
        lines += ["<details><summary>" + f"{len(fine)} ok</summary>", "", *_table(fine), "</details>", ""]
    lines += [f"- {_safe(note)}" for note in report.notes]
    return "\n".join(lines).rstrip() + "\n"


def _table(judgements: Sequence[Judgement]) -> list[str]:
    if not judgements:
        return []
    lines = ["| verdict | cell | metric | baseline | now | change | |", "|---|---|---|--:|--:|--:|---|"]
    for j in judgements[:MOST]:
        numbers = number(j.baseline), number(j.current), j.moved
        cells = [j.verdict, str(j.cell), j.metric, *numbers, j.reason or j.basis]
        lines.append("| " + " | ".join(map(_safe, cells)) + " |")
    if len(judgements) > MOST:
        lines.append(f"| | and {len(judgements) - MOST} more | | | | | |")
    return [*lines, ""]


def _safe(words: str) -> str:
    """Nothing in a name or a message ends the cell, or becomes a tag."""
    plain = " ".join(words.split())
    for mark, shown in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("|", "\\|"), ("`", "'"), ("*", "\\*")):
        plain = plain.replace(mark, shown)
    return plain
