"""Attribution from a table of perplexities, without any model: the method of Press et al. 2022, appendix B.

    curse(X) = ln ppl nonoverlapping(X) - ln ppl sliding(X, S)
    total D = nonoverlapping(W) - nonoverlapping(L)     early token E = curse(W) - curse(L)
    beyond base G = sliding(W) - sliding(L)              D = E + G

W is the training length. A table has means only, so there is no interval, and nothing shows what far tokens say.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.probes.attribution_verdict import Change, Verdict

SHIPPED = Path(__file__).parents[1] / "published"
COLUMNS = {
    "method": ("method", "model"),
    "train_length": ("train_len", "train_length"),
    "length": ("eval_len", "length"),
    "protocol": ("protocol",),
    "stride": ("stride",),
    "ppl": ("ppl",),
}
"""What is needed, and the names it may have: those of the shipped table, and those of ppl.csv."""
SUBJECT = ("corpus", "data", "split", "scheme", "scheme_params")
"""Columns that tell apart what must not be compared, where the table has them."""


@dataclass(frozen=True)
class Subject:
    """One model on one text."""

    name: str
    train_length: int
    text: str
    """Corpus and split."""
    scheme: str = ""
    scheme_params: str = ""


Found = dict[Subject, dict[tuple[str, int, int], float]]
"""ln ppl by (protocol, length, stride); nonoverlapping has stride 0."""


def names() -> list[str]:
    """Tables that are shipped."""
    return sorted(p.stem for p in SHIPPED.glob("*.csv"))


def read(spec: str) -> Found:
    """The shipped table or CSV file `spec`; rows without a number (`OOM`, `-`, empty) are left out.

    Raises UserError for a file that is not there, columns that it lacks, and two different values for one place.
    """
    path = SHIPPED / f"{spec}.csv" if spec in names() else Path(spec)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.DictReader(file)
            header, rows = reader.fieldnames or [], list(reader)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        known, why = ", ".join(names()), getattr(error, "strerror", None) or error
        raise UserError(f"--from {spec}: cannot be read ({why}); give a CSV file, or one of {known}") from None
    columns = {}
    for name, known in COLUMNS.items():
        columns[name] = next((c for c in known if c in header), "")
        if not columns[name]:
            raise UserError(f"--from {spec}: it has no column {' or '.join(known)}; it has: {', '.join(header)}")
    found: Found = defaultdict(dict)
    for line, row in enumerate(rows, 2):
        _add(found, spec, line, row, columns)
    if not found:
        raise UserError(f"--from {spec}: it has no row with a perplexity")
    return dict(found)


def _add(found: Found, spec: str, line: int, row: dict[str, str], columns: dict[str, str]) -> None:
    own = {name: (row[column] or "").strip() for name, column in columns.items()}
    try:
        nll = math.log(float(own["ppl"]))
    except ValueError:
        return
    if not math.isfinite(nll):
        return
    try:
        train, length = int(own["train_length"]), int(own["length"])
        stride = int(own["stride"]) if own["protocol"] == "sliding" else 0
    except ValueError:
        raise UserError(
            f"--from {spec}: line {line}: training length, length and stride must be whole numbers"
        ) from None
    text = " ".join(filter(None, (row.get(c, "") for c in SUBJECT[:3])))
    subject = Subject(own["method"], train, text, row.get("scheme") or own["method"], row.get("scheme_params") or "")
    place = own["protocol"], length, stride
    if abs(found[subject].setdefault(place, nll) - nll) > 1e-9:
        raise UserError(
            f"--from {spec}: line {line}: {own['method']} trained at {train} has two perplexities for "
            f"{own['protocol']} {length}: {math.exp(found[subject][place]):.6g} and {own['ppl']}"
        )


def attribute(found: Found, base: int | None, wanted: Sequence[int]) -> list[tuple[Subject, int, Verdict]]:
    """(subject, stride, verdict) of every length beyond the base whose four perplexities the table has.

    base: W, or None for each training length; wanted: lengths, or empty for all.
    """
    out = []
    for subject, values in found.items():
        near = base or subject.train_length
        for stride in sorted({s for protocol, _, s in values if protocol == "sliding"}):
            for length in sorted({n for _, n, _ in values if n > near and (not wanted or n in wanted)}):
                places = [("nonoverlapping", near, 0), ("sliding", near, stride)]
                places += [("nonoverlapping", length, 0), ("sliding", length, stride)]
                if all(place in values for place in places):
                    out.append((subject, stride, _verdict(subject, near, length, *(values[p] for p in places))))
    return out


def title(subject: Subject, entries: Sequence[tuple[Subject, int, Verdict]]) -> str:
    """Its name in attribution.csv: with the text where the table has several."""
    several = len({other.text for other, _, _ in entries}) > 1
    return f"{subject.name} trained at {subject.train_length}" + (f", {subject.text}" if several else "")


def _verdict(subject: Subject, base: int, length: int, base_all: float, base_full: float, all_: float, full: float):
    total = Change(base_all, all_, base_all - all_)
    early = Change(base_all - base_full, all_ - full, (base_all - base_full) - (all_ - full))
    beyond = Change(base_full, full, base_full - full)
    return Verdict(subject.name, "published", base, length, total, early, beyond, None, False)


def rows(entries: Sequence[tuple[Subject, int, Verdict]], data: str) -> list[dict[str, Any]]:
    """Rows of attribution.csv, method `sliding`, without intervals."""
    out = []
    for subject, stride, verdict in entries:
        parts = {"total": verdict.total, "early_token": verdict.early, "beyond_base": verdict.beyond}
        for component, change in parts.items():
            out.append(
                {
                    "model": title(subject, entries),
                    "scheme": subject.scheme,
                    "scheme_params": subject.scheme_params,
                    "length": verdict.length,
                    "method": "sliding",
                    "base_length": verdict.base,
                    "stride": stride,
                    "component": component,
                    "train_length": subject.train_length,
                    "nll_from": change.before,
                    "nll_to": change.after,
                    "nats": change.nats,
                    "share": change.nats / verdict.total.nats if verdict.total.nats else None,
                    "reading": verdict.reading,
                    "verdict": verdict.text,
                    "data": data,
                    "status": "ok",
                    "detail": "published means: no interval",
                }
            )
    return out
