"""GitHub annotations: workflow commands, a line each, for what fails the gate or cannot be compared.

::error title=worse%3A reference%3Aalibi nonoverlapping 512::ppl 4.0 -> 4.2, +5 %, tolerated 1 %
"""

from lengthbench.check.gate import Report
from lengthbench.check.judge import FAILING, OPEN

MOST = 10
"""GitHub shows that many of a step; the last one then says how many more there are."""


def lines(report: Report) -> list[str]:
    wrong = report.of(*FAILING, OPEN)
    shown = wrong if len(wrong) <= MOST else wrong[: MOST - 1]
    found = [line(f"{j.verdict}: {j.cell}", j.said) for j in shown]
    if len(wrong) > len(shown):
        found.append(line("lengthbench check", f"{len(wrong) - len(shown)} more cells; see the table"))
    return found


def line(title: str, message: str) -> str:
    """One command; whatever the words hold, it stays one line."""
    return f"::error title={_escaped(title).replace(':', '%3A').replace(',', '%2C')}::{_escaped(message)}"


def _escaped(words: str) -> str:
    return words.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
