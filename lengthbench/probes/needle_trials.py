"""One trial of retrieval, judged: the answer token by token, or the text that was written.

exact: every scored token of the answer was the first choice, as greedy writing would have it; for written text, the
answer and nothing else. choice: its mean loss is below that of every wrong answer.
"""

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthbench.retrieval import scoring

if TYPE_CHECKING:
    from lengthbench.probes.needle import Spot, Work


def judged(work: "Work", results: dict[int, dict[str, Any]]) -> dict["Spot", dict[str, Any]]:
    """Columns of trials.csv by the spot of the right answer, for every prompt that is finished."""
    found: dict[Any, dict[str, Any]] = {}
    wrong: dict[Any, list[float]] = defaultdict(list)
    broken: dict[Any, dict[str, Any]] = {}
    for number, trial in enumerate(work.trials):
        if number not in results:
            continue
        spot, result = trial.key, results[number]
        if result["status"] != "ok":
            broken.setdefault(_right(spot), {"status": result["status"], "detail": result["detail"]})
        elif spot.candidate:
            wrong[_right(spot)].append(float(np.mean(result["nll"])))
        else:
            found[spot] = _trial(work, spot, result)
    for spot, row in found.items():
        others = wrong.get(spot, [])
        if len(others) == work.n_wrong(spot) and others:
            row["choice"] = row["mean"] < min(others)
    return {**found, **{spot: {**_identity(work, spot), **why} for spot, why in broken.items()}}


def _right(spot: "Spot") -> "Spot":
    return replace(spot, candidate=0)


def _identity(work: "Work", spot: "Spot") -> dict[str, Any]:
    made = work.prompts[spot]
    return {
        "seed": work.subject.seed,
        "depth": made.depth,
        "n_prompt_tokens": made.n_prompt_tokens,
        "n_answer_tokens": made.n_answer_tokens,
        "answer": made.answer.text,
        "prompt_sha256": made.sha256,
    }


def _trial(work: "Work", spot: "Spot", result: dict[str, Any]) -> dict[str, Any]:
    if "output" in result:
        return _generated(work, spot, result)
    made, nll, first = work.prompts[spot], np.array(result["nll"], np.float64), result["first"]
    order = made.answer.scored
    parts = {
        name: all(first[int(i)] == "1" for i in np.searchsorted(order, places))
        for name, places in made.answer.parts.items()
    }
    return {
        **_identity(work, spot),
        "answer_nll": float(nll.sum()),
        "mean": float(nll.mean()),
        "exact": all(c == "1" for c in first),
        "parts": parts,
        "status": "ok",
        "detail": "",
    }


def _generated(work: "Work", spot: "Spot", result: dict[str, Any]) -> dict[str, Any]:
    """Judged by its text: the first line where no template says when a reply is over."""
    made, task = work.prompts[spot], work.tasks.get(spot.task)
    output = work.subject.tokenizer.decode(np.array(result["output"], np.int32))
    right = [made.answer.text]
    if task is not None and len(made.answer.parts) > 1:
        order = made.answer.tokens
        right = [work.subject.tokenizer.decode(order[places]).strip() for places in made.answer.parts.values()]
    judged = output if work.template != "none" or "\n" in made.answer.text else output.lstrip().split("\n")[0]
    single = list(made.answer.parts) if len(made.answer.parts) == 1 else []
    draw = task.draw.get(single[0]) if task is not None and single else None
    wrong = [one.text for one in made.wrong]
    hit, named = scoring.contains(judged, right, wrong, draw), scoring.other(judged, right, wrong, draw)
    over = result["ended"] or (judged != output.lstrip() and work.template == "none")
    return {
        **_identity(work, spot),
        "exact": scoring.exact(judged, made.answer.text),
        "contains": hit,
        "cut": not hit and not named and not over,
        "normaliser": scoring.NORMALISER,
        "parts": {},
        "output": output,
        "status": "ok",
        "detail": "",
    }
