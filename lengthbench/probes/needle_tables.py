"""Retrieval's rows: needle.csv, a row a cell; trials.csv, the single trials; contrasts.csv, the effect of the position.

Losses are nats of a whole answer: the sum over its scored tokens, then the mean over trials. Rates have Wilson
intervals, differences paired ones over trials.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthbench import stats
from lengthbench.probes.needle_trials import judged
from lengthbench.probes.perplexity_tables import MODEL_KEY, MODEL_VALUES
from lengthbench.run.table import Schema

if TYPE_CHECKING:
    from lengthbench.probes.needle import Spot, Work

TASK_KEY = (*MODEL_KEY, "task", "task_version", "mode")
NEEDLE = Schema(
    "needle",
    (*TASK_KEY, "length", "position"),
    (
        "depth",
        "train_length",
        "template",
        "n_trials",
        "n_cut",
        "exact_rate",
        "ci_low",
        "ci_high",
        "choice_rate",
        "chance",
        "contains_rate",
        "answer_nll",
        "absent_exact_rate",
        "absent_nll",
        "decoy_exact_rate",
        "oracle_exact_rate",
        "evidence_gain",
        "gain_ci_low",
        "gain_ci_high",
        "above_absent",
        *MODEL_VALUES[1:],
        "status",
        "detail",
    ),
)
TRIALS = Schema(
    "trials",
    (*TASK_KEY, "length", "position", "arm", "trial"),
    (
        "seed",
        "depth",
        "n_prompt_tokens",
        "n_answer_tokens",
        "answer",
        "answer_nll",
        "exact",
        "choice",
        "contains",
        "cut",
        "normaliser",
        "output",
        "prompt_sha256",
        "status",
        "detail",
    ),
)
ANSWERS = Schema(
    "answers",
    (*TASK_KEY, "length", "position", "answer"),
    ("n_trials", "exact_rate", "ci_low", "ci_high", "absent_exact_rate", "status", "detail"),
)
CONTRASTS = Schema(
    "contrasts",
    (*TASK_KEY, "length", "contrast"),
    (
        "n_trials",
        "exact_difference",
        "exact_ci_low",
        "exact_ci_high",
        "nll_difference",
        "nll_ci_low",
        "nll_ci_high",
        "status",
        "detail",
    ),
)
SCHEMAS = (NEEDLE, TRIALS, ANSWERS, CONTRASTS)
WEIGHTS = {
    "start-middle": {"start": 1.0, "middle": -1.0},
    "end-middle": {"end": 1.0, "middle": -1.0},
    "sag": {"start": 0.5, "end": 0.5, "middle": -1.0},
}
"""Contrasts of positions; the sag is how far the middle hangs below the ends."""


def cells(work: "Work", results: dict[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """needle.csv without the model's columns; a cell that is not finished has no row."""
    found = judged(work, results)
    by_cell: dict[tuple[str, int, str], dict[str, dict[int, dict]]] = defaultdict(lambda: defaultdict(dict))
    for spot, row in found.items():
        by_cell[spot.task, spot.length, spot.position][spot.arm][spot.trial] = row
    expected: dict[tuple[str, int, str], int] = defaultdict(int)
    for spot in work.prompts:
        expected[spot.task, spot.length, spot.position] += 1
    rows = []
    for (task, length), (status, detail) in work.missing.items():
        for name, _ in work.asked.positions if work.asked.jsonl is None else (("given", 0.0),):
            rows.append({**_task(work, task), "length": length, "position": name, "status": status, "detail": detail})
    for (task, length, position), arms in by_cell.items():
        whole = sum(len(own) for own in arms.values()) == expected[task, length, position]
        if whole and "evidence" in arms:
            oracle = by_cell.get((task, 0, "-"), {}).get("oracle", {})
            key = {**_task(work, task), "length": length, "position": position}
            known = {"chance": work.chances[task], "template": work.template}
            rows.append({**key, **_cell(work, arms, oracle), **known})
    return rows


def _task(work: "Work", task: str) -> dict[str, Any]:
    return {"task": task, "task_version": work.versions[task], "mode": work.asked.mode}


def _cell(work: "Work", arms: dict[str, dict[int, dict]], oracle: dict[int, dict]) -> dict[str, Any]:
    evidence = arms["evidence"]
    failed = [row for own in arms.values() for row in own.values() if row["status"] != "ok"]
    if failed:
        return {"status": failed[0]["status"], "detail": f"{len(failed)} prompts: {failed[0]['detail']}"}
    numbers = [n for n in sorted(evidence) if not evidence[n].get("cut")]
    n_cut = len(evidence) - len(numbers)
    if not numbers:
        return {"status": "error", "n_cut": n_cut, "detail": "every output was cut off; give a larger --budget"}
    exact = [bool(evidence[n]["exact"]) for n in numbers]
    low, high = stats.wilson(sum(exact), len(exact))
    depths = [d for n in numbers if (d := evidence[n]["depth"]) is not None]
    row: dict[str, Any] = {
        "depth": stats.ratio(depths, np.ones(len(depths))) if depths else None,
        "n_trials": len(numbers),
        "n_cut": n_cut if work.asked.mode == "generate" else None,
        "exact_rate": _rate(exact),
        "ci_low": low,
        "ci_high": high,
        "oracle_exact_rate": _rate([bool(row["exact"]) for row in oracle.values() if row["status"] == "ok"]),
        "status": "ok",
        "detail": "",
    }
    if work.asked.mode == "score":
        row["answer_nll"] = stats.ratio([evidence[n]["answer_nll"] for n in numbers], np.ones(len(numbers)))
    else:
        row["contains_rate"] = _rate([bool(evidence[n]["contains"]) for n in numbers])
    choices = [evidence[n]["choice"] for n in numbers if evidence[n].get("choice") is not None]
    row["choice_rate"] = _rate(choices) if len(choices) == len(numbers) else None
    if "decoy" in arms:
        row["decoy_exact_rate"] = _rate([bool(arms["decoy"][n]["exact"]) for n in numbers])
    if "absent" in arms:
        row |= _against_absent([evidence[n] for n in numbers], [arms["absent"][n] for n in numbers], work)
    return row


def _against_absent(evidence: Sequence[dict], absent: Sequence[dict], work: "Work") -> dict[str, Any]:
    ones, seed = np.ones(len(evidence)), str(work.subject.seed)
    hit = "exact" if work.asked.mode == "score" else "contains"
    more = np.array([int(a[hit]) - int(b[hit]) for a, b in zip(evidence, absent, strict=True)], np.float64)
    beats = stats.interval(more, ones, seed)
    against = {
        "absent_exact_rate": _rate([bool(b["exact"]) for b in absent]),
        "above_absent": None if beats.low is None else bool(beats.low > 0),
        "detail": beats.why_none.replace("blocks", "trials"),
    }
    if work.asked.mode == "generate":
        return against
    gain = np.array([b["answer_nll"] - a["answer_nll"] for a, b in zip(evidence, absent, strict=True)])
    found = stats.interval(gain, ones, seed)
    return {
        **against,
        "absent_nll": stats.ratio([b["answer_nll"] for b in absent], ones),
        "evidence_gain": stats.ratio(gain, ones),
        "gain_ci_low": found.low,
        "gain_ci_high": found.high,
    }


def _rate(hits: Sequence[bool]) -> float | None:
    return stats.ratio(np.array(hits, np.float64), np.ones(len(hits))) if len(hits) else None


def rows(work: "Work", identity: dict[str, Any], results: dict[int, dict[str, Any]]) -> dict[str, list[dict]]:
    """Rows of the four tables of one model."""
    key = {name: identity[name] for name in MODEL_KEY}
    found = judged(work, results)
    out: dict[str, list[dict]] = {schema.name: [] for schema in SCHEMAS}
    out["needle"] = [{**identity, **row} for row in cells(work, results)]
    for spot, row in found.items():
        place = {**_task(work, spot.task), "length": spot.length, "position": spot.position}
        if spot.arm == "oracle":
            place["length"] = work.prompts[spot].length
        own = {name: value for name, value in row.items() if name not in ("mean", "parts")}
        out["trials"].append({**key, **place, "arm": spot.arm, "trial": spot.trial, **own})
    finished = {(row["task"], row["length"], row["position"]) for row in out["needle"] if row["status"] == "ok"}
    out["answers"] = [{**key, **row} for row in _answers(work, found, finished)]
    out["contrasts"] = [{**key, **row} for row in _contrasts(work, found, finished)]
    return out


def _answers(work: "Work", found: dict["Spot", dict], finished: set) -> list[dict]:
    """Rates of each sub-answer, where an answer has several: the fact, and where it was found."""
    groups: dict[tuple, list[bool]] = defaultdict(list)
    for spot, row in found.items():
        place = (spot.task, spot.length, spot.position)
        if place in finished and spot.arm in ("evidence", "absent") and len(row["parts"]) > 1:
            for name, hit in row["parts"].items():
                groups[(*place, name, spot.arm)].append(hit)
    rows = []
    for (task, length, position, name, arm), hits in groups.items():
        if arm == "evidence":
            low, high = stats.wilson(sum(hits), len(hits))
            rows.append(
                {
                    **_task(work, task),
                    "length": length,
                    "position": position,
                    "answer": name,
                    "n_trials": len(hits),
                    "exact_rate": _rate(hits),
                    "ci_low": low,
                    "ci_high": high,
                    "absent_exact_rate": _rate(groups.get((task, length, position, name, "absent"), [])),
                    "status": "ok",
                    "detail": "",
                }
            )
    return rows


def _contrasts(work: "Work", found: dict["Spot", dict], finished: set) -> list[dict]:
    rows = []
    for task, length in sorted({(task, length) for task, length, _ in finished}):
        own = {name for t, n, name in finished if (t, n) == (task, length)}
        if not {"start", "middle", "end"} <= own:
            continue
        values: dict[str, dict[int, tuple[float, float]]] = defaultdict(dict)
        for spot, row in found.items():
            if (spot.task, spot.length, spot.arm) == (task, length, "evidence"):
                hit = row["exact"] if work.asked.mode == "score" else row["contains"]
                values[spot.position][spot.trial] = float(hit), row.get("answer_nll", 0.0)
        for name, weights in WEIGHTS.items():
            numbers = sorted(set.intersection(*(set(values[p]) for p in weights)))
            sums = np.array([[sum(w * values[p][n][i] for p, w in weights.items()) for n in numbers] for i in (0, 1)])
            ones = np.ones(len(numbers))
            exact, nll = (stats.interval(column, ones, str(work.subject.seed)) for column in sums)
            rows.append(
                {
                    **_task(work, task),
                    "length": length,
                    "contrast": name,
                    "n_trials": len(numbers),
                    "exact_difference": stats.ratio(sums[0], ones),
                    "exact_ci_low": exact.low,
                    "exact_ci_high": exact.high,
                    **(_nll(sums[1], nll) if work.asked.mode == "score" else {}),
                    "status": "ok",
                    "detail": exact.why_none.replace("blocks", "trials"),
                }
            )
    return rows


def _nll(column: np.ndarray, found: stats.Interval) -> dict[str, Any]:
    mean = stats.ratio(column, np.ones(len(column)))
    return {"nll_difference": mean, "nll_ci_low": found.low, "nll_ci_high": found.high}
