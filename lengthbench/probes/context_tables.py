"""The ladder's rows: context.csv, a row a rung, and context_summary.csv with best rung and horizon.

`above_best` is the paired difference to the best rung. The horizon's interval is made by asking each rung: its low
end is the first rung that cannot be told from one within epsilon, its high end the first that surely is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthbench import stats
from lengthbench.probes import losses, perplexity_tables
from lengthbench.probes.losses import BlockSum, Cell, per_unit, units
from lengthbench.probes.perplexity_tables import BLOCKS, LOSS, MODEL_KEY, MODEL_VALUES
from lengthbench.run.table import Schema

if TYPE_CHECKING:
    from lengthbench.probes.context import Work

CONTEXT = Schema(
    "context",
    (*MODEL_KEY, "length", "stride", "rung", "condition"),
    (
        "context_min",
        "context_max",
        "train_length",
        "base_length",
        *LOSS,
        "above_best",
        "above_best_ci_low",
        "above_best_ci_high",
        "n_groups",
        *MODEL_VALUES[1:],
        "status",
        "detail",
    ),
)
SUMMARY = Schema(
    "context_summary",
    (*MODEL_KEY, "length", "stride"),
    (
        "train_length",
        "base_length",
        "best_rung",
        "best_nll",
        "horizon",
        "horizon_low",
        "horizon_high",
        "epsilon",
        "n_groups",
        "verdict",
        *MODEL_VALUES[1:],
        "status",
        "detail",
    ),
)
SCHEMAS = (CONTEXT, SUMMARY, BLOCKS)


@dataclass(frozen=True)
class Rung:
    context_max: int
    nll: float
    above: float
    """Nats above the best rung, on the same targets."""
    interval: stats.Interval


@dataclass(frozen=True)
class Ladder:
    rungs: tuple[Rung, ...]
    """Those that are measured, by ascending context."""
    best: Rung
    horizon: Rung
    low: Rung | None
    high: Rung | None
    """Ends of the horizon's interval; None where there are too few groups."""


def ladder(work: "Work", sums: Sequence[BlockSum]) -> Ladder | None:
    """The rungs whose groups are all ok, compared; None if there is none."""
    found = {}
    for context, fed in work.rungs:
        own = losses.of_cell(sums, Cell("ladder", fed, work.stride))
        if own and len(own) == len(work.selection.blocks) and all(b.nll_sum is not None for b in own):
            found[context + work.stride - 1] = own
    if not found:
        return None
    nll = {c: stats.ratio([b.nll_sum or 0.0 for b in own], [b.n_scored for b in own]) for c, own in found.items()}
    best = min(nll, key=lambda c: (nll[c], c))
    rungs = [Rung(c, nll[c], *_above(own, found[best], work)) for c, own in found.items()]
    top = next(r for r in rungs if r.context_max == best)
    epsilon = work.asked.epsilon
    horizon = next(r for r in rungs if r.above <= epsilon)
    low = next((r for r in rungs if r.interval.low is not None and r.interval.low <= epsilon), None)
    high = next((r for r in rungs if r.interval.high is not None and r.interval.high <= epsilon), None)
    return Ladder(tuple(rungs), top, horizon, low, high)


def _above(own: list[BlockSum], best: list[BlockSum], work: "Work") -> tuple[float, stats.Interval]:
    difference = np.array([(a.nll_sum or 0.0) - (b.nll_sum or 0.0) for a, b in zip(own, best, strict=True)])
    n, groups = [b.n_scored for b in own], units(own)
    found = stats.interval(per_unit(groups, difference), per_unit(groups, n), str(work.subject.seed))
    return stats.ratio(difference, n), found


def verdict(work: "Work", found: Ladder) -> str:
    """Best rung, horizon, and what the longest context does, in words."""
    best, last, horizon = found.best, found.rungs[-1], found.horizon
    between = f" [{found.low.context_max}, {found.high.context_max}]" if found.low and found.high else ""
    text = (
        f"best with {best.context_max} tokens of context ({best.nll:.3f} nat); "
        f"{horizon.context_max}{between} are within {work.asked.epsilon:g} nat of that"
    )
    if horizon.context_max == found.rungs[0].context_max:
        text += " (the shortest rung; a smaller stride shows shorter ones)"
    if last.context_max == best.context_max:
        return text
    low, high = last.interval.low, last.interval.high
    if low is None or high is None:
        return f"{text}; {last.context_max} are {last.above:+.3f} nat"
    worse = "worse by" if low > 0 else "no different,"
    return f"{text}; {last.context_max} are {worse} {last.above:.3f} nat [{low:.3f}, {high:.3f}]"


def rows(work: "Work", identity: dict[str, Any], sums: Sequence[BlockSum]) -> dict[str, list[dict]]:
    """Rows of the three tables; a rung that is not finished has none."""
    length, names = work.asked.lengths[0], [d.name for d in work.subject.documents]
    key = {**identity, "length": length, "stride": work.stride, "base_length": work.base}
    found = ladder(work, sums)
    compared = {r.context_max: r for r in found.rungs} if found else {}
    tables: dict[str, list[dict]] = {"context": [], "context_summary": [], "blocks": []}
    for number, (context, fed) in enumerate(work.rungs, 1):
        place = {"rung": number, "context_min": context, "context_max": context + work.stride - 1}
        for condition in ("full", "swap") if work.asked.swap and context > work.base else ("full",):
            cell = Cell("ladder", fed, work.stride, condition)
            own = losses.of_cell(sums, cell)
            row = _rung(work, fed, own, condition)
            if row is None:
                continue
            if condition == "full" and (at := compared.get(place["context_max"])):
                above = (at.above, at.interval.low, at.interval.high)
                row |= dict(zip(("above_best", "above_best_ci_low", "above_best_ci_high"), above, strict=True))
            tables["context"].append({**key, **place, "condition": condition, **row})
            model = {name: identity[name] for name in MODEL_KEY}
            block_key = {**model, "protocol": "ladder", "length": fed, "stride": work.stride, "base_length": work.base}
            tables["blocks"] += [{**block_key, **perplexity_tables.block_row(b, names)} for b in own]
    tables["context_summary"] = _summary(work, key, found)
    return tables


def _rung(work: "Work", fed: int, own: list[BlockSum], condition: str) -> dict[str, Any] | None:
    """The columns of one rung under one condition; None while it is not finished."""
    if fed in work.missing:
        status, detail = work.missing[fed]
        return {"status": status, "detail": detail}
    if not own and condition == "swap":
        return {"status": "too_short", "detail": "no other text to put in the place of the far context"}
    if len(own) < len(work.selection.blocks):
        return None
    failed = next((b for b in own if b.status != "ok"), None)
    if failed:
        return {"status": failed.status, "detail": failed.detail}
    loss = perplexity_tables.loss([(b.nll_sum or 0.0, b.n_scored) for b in own], own, work.subject.seed)
    n_bytes = sum(b.n_bytes for b in own)
    why = loss.pop("why_none")
    perplexities = {
        "ppl": stats.ppl(loss["nll"]),
        "bits_per_byte": stats.bits_per_byte(loss["nll_sum"], n_bytes) if n_bytes else None,
    }
    return {**loss, **perplexities, "n_bytes": n_bytes, "n_groups": len(own), "status": "ok", "detail": why}


def _summary(work: "Work", key: dict[str, Any], found: Ladder | None) -> list[dict]:
    if found is None:
        if len(work.missing) < len(work.rungs):
            return []
        status, detail = next(iter(work.missing.values()))
        return [{**key, "status": status, "detail": detail}]
    return [
        {
            **key,
            "best_rung": found.best.context_max,
            "best_nll": found.best.nll,
            "horizon": found.horizon.context_max,
            "horizon_low": found.low.context_max if found.low and found.high else None,
            "horizon_high": found.high.context_max if found.low and found.high else None,
            "epsilon": work.asked.epsilon,
            "n_groups": len(work.selection.blocks),
            "verdict": verdict(work, found),
            "status": "ok",
            "detail": found.best.interval.why_none,
        }
    ]
