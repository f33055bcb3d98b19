"""What a run found, in the sentences it was closed with and the verdicts of its rows; nothing is concluded here."""

from collections.abc import Iterator
from dataclasses import dataclass

from lengthbench.report.runs import Row, Run, subject


@dataclass(frozen=True)
class Finding:
    subject: str
    """Empty where the sentence names its models itself."""
    reading: str
    """A few words; empty where the run has only the sentence."""
    text: str

    @property
    def line(self) -> str:
        """As the manifest's sentence has it."""
        return f"{self.subject}: {self.text}" if self.subject else self.text


def findings(run: Run) -> list[Finding]:
    """Sentences about all models first, then each model's verdict at its longest length."""
    own = [*attribution(run), *ladder(run)]
    known = {f"{row.get('model')}: {row.get('verdict')}" for row in run.rows("attribution", "context_summary")}
    sentence = run.manifest.get("sentence")
    # Of an unfinished run it may rest on cells of which only some blocks are there.
    lines = sentence.splitlines() if isinstance(sentence, str) and not run.mark else []
    return [*(Finding("", "", line) for line in lines if line.strip() and line not in known), *own]


def attribution(run: Run) -> Iterator[Finding]:
    """One for each model and method, in the table's order."""
    longest: dict[tuple[str, str], Row] = {}
    for row in run.rows("attribution"):
        key = subject(row), row["method"]
        if row.get("verdict") and (key not in longest or float(row["length"]) >= float(longest[key]["length"])):
            longest[key] = row
    several = len({method for _, method in longest}) > 1
    for (name, method), row in longest.items():
        reading = row.get("reading", "")
        yield Finding(name, f"{reading} (method {method})" if several else reading, row["verdict"])


def ladder(run: Run) -> Iterator[Finding]:
    for row in run.rows("context_summary"):
        if row.get("verdict"):
            yield Finding(subject(row), f"horizon {row.get('horizon', '')} tokens", row["verdict"])
