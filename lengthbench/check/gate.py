"""The regression gate: a run against a baseline, cell by cell."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lengthbench import errors
from lengthbench.check import judge, pair, rules
from lengthbench.check.cell import Cell
from lengthbench.check.judge import FAILING, OPEN, Judgement
from lengthbench.check.rules import Rule
from lengthbench.check.side import Side, load, usable
from lengthbench.check.tables import ENVIRONMENT
from lengthbench.errors import UserError

SEED = "0"
"""Of the intervals' resampling."""
ORDER = ("worse", "nonfinite", "missing", OPEN, "better", "ok")


@dataclass(frozen=True)
class Report:
    run: Path
    baseline: Path
    rules: tuple[Rule, ...]
    """Those that the baseline has cells for."""
    judgements: tuple[Judgement, ...]
    """The failing ones first, then in the order of the baseline."""
    notes: tuple[str, ...]
    """What differs and is not judged, and what was not compared as well as it could be."""

    def of(self, *verdicts: str) -> list[Judgement]:
        return [j for j in self.judgements if j.verdict in verdicts]

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(j.verdict for j in self.judgements)
        return {verdict: found[verdict] for verdict in ORDER if found[verdict]}

    @property
    def verdict(self) -> str:
        return "failed" if self.of(*FAILING) else OPEN if self.of(OPEN) else "passed"

    @property
    def code(self) -> int:
        return {"failed": errors.GATE_FAILED, OPEN: errors.UNUSABLE, "passed": errors.OK}[self.verdict]

    @property
    def sentence(self) -> str:
        """The whole in one line, with the first of what is wrong."""
        counts = ", ".join(f"{n} {verdict}" for verdict, n in self.counts.items())
        head = f"{self.run} against {self.baseline}: {self.verdict}; {counts}"
        wrong = self.of(*FAILING, OPEN)
        return f"{head}; first {wrong[0].cell}: {wrong[0].said}" if wrong else head


def check(run: Path, baseline: Path, wanted: Sequence[str] = (), renamed: Mapping[str, str] | None = None) -> Report:
    """Compare two runs. Raises UserError if one of them cannot be used, or nothing would be compared.

    wanted: rules as after --fail; none: the defaults.
    """
    asked = rules.parse(wanted)
    return compare(load(run), usable(load(baseline)), asked, bool(wanted), renamed or {})


def compare(
    current: Side, baseline: Side, asked: tuple[Rule, ...], explicit: bool, renamed: Mapping[str, str]
) -> Report:
    """explicit: whether each rule must find something to judge."""
    asked = _busy(baseline, asked, explicit)
    found = pair.pairs(baseline, current, renamed)
    judged = [j for p in found for j in judge.judge(p, asked, SEED)]
    partners = {id(p.current) for p in found}
    new = [cell for cell in current.cells if id(cell) not in partners]
    judged += [j for cell in new if (j := judge.stray(cell))]
    judged.sort(key=lambda j: ORDER.index(j.verdict))
    return Report(
        current.path, baseline.path, asked, tuple(judged), tuple(_notes(current, baseline, found, new, judged))
    )


def _busy(baseline: Side, asked: tuple[Rule, ...], explicit: bool) -> tuple[Rule, ...]:
    """The rules that have something to judge. Raises UserError without any: who looks at nothing never passes."""
    idle = [r for r in asked if not any(judge.measures(r, c) for c in baseline.cells if c.status == "ok")]
    if (explicit and idle) or len(idle) == len(asked):
        has = [n for n in rules.METRICS if any(judge.measures(Rule(n, 0, False), c) for c in baseline.cells)]
        example = f"--fail {has[0]}:5%" if has else "measure it again"
        raise UserError(
            f"--fail {', '.join(map(str, idle))}: {baseline.path} has no such cell, so nothing would be compared; "
            f"it has {', '.join(has) or 'none of what can be judged'}: {example}"
        )
    return tuple(r for r in asked if r not in idle)


def _notes(
    current: Side, baseline: Side, found: Sequence[pair.Pair], new: Sequence[Cell], judged: Sequence[Judgement]
) -> list[str]:
    notes = []
    if not current.complete:
        notes.append(f"{current.path} is {current.manifest['status']}: it may have more cells, go on by --resume")
    unpaired = sum(j.basis == "unpaired" for j in judged)
    if unpaired:
        sides = [str(side.path) for side in (baseline, current) if side.bare]
        why = f": {' and '.join(sides)} has no blocks or trials" if sides else ""
        notes.append(f"unpaired: {unpaired} comparisons are of points only, without an interval{why}")
    few = next((j.basis for j in judged if j.basis.startswith("only")), "")
    notes += [f"{few} (in some cells)"] if few else []
    both = [(p.baseline, p.current) for p in found if p.current]
    changed = Counter(
        f"{column}: {old.row[column] or 'none'} -> {now.row[column] or 'none'}"
        for old, now in both
        for column in ("model", "scheme", "scheme_params", *ENVIRONMENT)
        if column in old.row and column in now.row and old.row[column] != now.row[column]
    )
    notes += [f"{what} ({n} of {len(both)} cells)" for what, n in changed.items()]
    notes += _machines(baseline, current)
    if new:
        notes.append(f"{len(new)} cells are not in the baseline, such as {new[0]}")
    return notes


def _machines(baseline: Side, current: Side) -> list[str]:
    """Versions and machine, where both manifests tell."""
    facts = []
    for side in (baseline, current):
        known = side.manifest.get("environment", {})
        facts.append({**known.get("versions", {}), **{k: str(v) for k, v in known.get("machine", {}).items()}})
    old, now = facts
    if not old or not now:
        return []
    names = sorted(old.keys() | now.keys())
    return [f"{n}: {old.get(n, 'none')} -> {now.get(n, 'none')}" for n in names if old.get(n) != now.get(n)]
