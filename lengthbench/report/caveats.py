"""What a reader must not overlook, each said only if the rows of the run call for it."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from lengthbench import stats
from lengthbench.report.runs import Row, Run, subject

SHOWN = 6
"""Names listed before the rest is counted."""


@dataclass(frozen=True)
class Caveat:
    title: str
    texts: list[str]
    runs: list[str]
    """Those it is about."""


def caveats(runs: Sequence[Run]) -> list[Caveat]:
    """Those that apply, in the order of RULES, each once."""
    said = [(title, text, run.name) for rule in RULES for run in runs for title, text in rule(run)]
    said += [(title, text, run.name) for title, text in _between(runs) for run in runs]
    found: dict[str, Caveat] = {}
    for title, text, name in said:
        own = found.setdefault(title, Caveat(title, [], []))
        own.texts.extend([text] if text not in own.texts else [])
        own.runs.extend([name] if name not in own.runs else [])
    return list(found.values())


def _unfinished(run: Run) -> Iterator[tuple[str, str]]:
    if run.mark:
        yield "Unfinished", f"{run.mark}. Go on with it by --resume."


def _failed(run: Run) -> Iterator[tuple[str, str]]:
    for table in ("attribution", "ppl", "context", "needle", "speed"):
        rows = run.tables.get(table, [])
        if failed := [row for row in rows if row["status"] != "ok"]:
            counts = ", ".join(f"{n} {status}" for status, n in Counter(row["status"] for row in failed).items())
            first = {subject(row): row.get("detail", "") for row in reversed(failed)}
            why = _some(f"{name}: {detail}" for name, detail in reversed(first.items()) if detail)
            yield "Cells without numbers", f"{len(failed)} of {len(rows)} rows of {table}.csv: {counts}. {why}".strip()


def _no_interval(run: Run) -> Iterator[tuple[str, str]]:
    for table, rows in run.tables.items():
        own = [row for row in rows if "no interval" in row.get("detail", "") and not _published(row)]
        if own and table != "blocks":
            why = _some(_part(row["detail"], "no interval").removeprefix("no interval: ") for row in own)
            yield "No interval", f"{len(own)} of {len(rows)} rows of {table}.csv: {why}"


def _few_blocks(run: Run) -> Iterator[tuple[str, str]]:
    counts = [
        int(n)
        for row in run.rows("ppl", "attribution", "context")
        if row.get("status") == "ok" and (n := row.get("n_blocks") or row.get("n_groups") or "").isdecimal()
    ]
    few = [n for n in counts if stats.TOO_FEW <= n < stats.FEW]
    if few:
        low, high = min(few), max(few)
        blocks = f"{low}" if low == high else f"{low} to {high}"
        yield (
            "Few blocks",
            (
                f"Intervals rest on {blocks} blocks, fewer than {stats.FEW}: they are t intervals, and another stretch "
                "of text may move the numbers. More --max-tokens narrows them."
            ),
        )


def _sampled(run: Run) -> Iterator[tuple[str, str]]:
    details = {_part(row["detail"], "sampled") for row in run.rows() if "sampled" in row.get("detail", "")}
    if details:
        yield "Sampled", f"Not every window was measured; intervals are wider for it. {_some(sorted(details))}"


def _start_token(run: Run) -> Iterator[tuple[str, str]]:
    own = [row for row in run.rows() if row.get("bos") not in (None, "", "none")]
    if own:
        yield (
            "Start token",
            (
                f"A start token stands in front of every window of {_some(subject(row) for row in own)}: "
                "contexts are one smaller, the targets the same."
            ),
        )


def _clipped(run: Run) -> Iterator[tuple[str, str]]:
    own = [row for row in run.rows("ppl") if row.get("n_clipped", "").isdecimal() and int(row["n_clipped"])]
    if own:
        most = max(int(row["n_clipped"]) for row in own)
        yield (
            "Clipped",
            (
                f"Up to {most:,} targets of a row have less context than its protocol gives elsewhere, since their "
                "document begins there."
            ),
        )
    left = {_part(row["detail"], "clipped") for row in run.rows("attribution") if "clipped" in row.get("detail", "")}
    if left:
        yield "Clipped", f"Attribution by sliding windows leaves blocks out: {_some(sorted(left))}."


def _published_means(run: Run) -> Iterator[tuple[str, str]]:
    if any(_published(row) for row in run.rows("attribution")):
        yield (
            "Published means",
            (
                "These rows come from a table of perplexities: there is no interval, and nothing shows what the far "
                "tokens say. No model was run."
            ),
        )


def _hf(run: Run) -> Iterator[tuple[str, str]]:
    if any(row.get("protocol") == "hf" for row in run.rows("ppl")):
        yield "Protocol hf", "Its targets differ with the length: for comparison with published numbers only."


def _one_seed(run: Run) -> Iterator[tuple[str, str]]:
    own = [subject(row) for row in run.rows() if row.get("model", "").startswith("reference:")]
    if own:
        yield (
            "One training seed",
            (
                f"One checkpoint was trained for each scheme ({_some(own)}): what another seed would change is in no "
                "interval."
            ),
        )


def _contamination(run: Run) -> Iterator[tuple[str, str]]:
    public = run.facts.get("licence") == "public domain"
    own = [
        subject(row)
        for row in run.rows()
        if (public or row.get("data") == "novels") and not row.get("model", "").startswith(("reference:", "oracle:"))
    ]
    if own:
        yield (
            "Public-domain books",
            (
                f"They may be in the pretraining set of {_some(own)}: low losses, and use of what far tokens say, may "
                "be recitation. Bring a text of your own with --data."
            ),
        )


def _warnings(run: Run) -> Iterator[tuple[str, str]]:
    for model in run.models:
        for warning in model.get("warnings") or ():
            yield "On loading", f"{model.get('model', '')}: {warning}"


def _between(runs: Sequence[Run]) -> Iterator[tuple[str, str]]:
    """What keeps the runs from being compared row by row."""
    for column, words in (("data", "texts"), ("dtype", "number formats"), ("device", "devices")):
        found = [{row[column] for row in run.rows() if row.get(column)} for run in runs]
        if len(runs) > 1 and any(values != found[0] for values in found):
            named = "; ".join(
                f"{run.name}: {', '.join(sorted(v)) or 'none'}" for run, v in zip(runs, found, strict=True)
            )
            yield f"Different {words}", f"The runs differ in {column} ({named})."
    measured = [run for run in runs if run.tables.get("ppl")]
    counts = [{row["n_scored"] for row in run.rows("ppl") if row.get("n_scored")} for run in measured]
    if any(values != counts[0] for values in counts):
        yield "Different targets", "The runs score different numbers of targets: their values are not paired."


RULES: tuple[Callable[[Run], Iterator[tuple[str, str]]], ...] = (
    _unfinished, _failed, _no_interval, _few_blocks, _sampled, _clipped, _start_token, _published_means, _hf, _warnings,
    _one_seed, _contamination,
)  # fmt: skip


def _published(row: Row) -> bool:
    return "published means" in row.get("detail", "")


def _part(detail: str, word: str) -> str:
    """The part of a detail that has the word in it."""
    return next(part for part in detail.split("; ") if word in part)


def _some(words) -> str:
    """The different ones, the first few of them by name."""
    found = list(dict.fromkeys(words))
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return f"{'; '.join(found[:SHOWN])}{more}"
