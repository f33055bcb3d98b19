"""A timing: how long one pass took; and the sides that are timed, whole models and bare schemes.

    score      losses of every token of the windows             tokens read a second
    generate   32 tokens behind a prompt of the length          tokens written a second, the reading included
    train      one update: forwards, backwards, optimizer       tokens read a second

The quickest of two or more passes counts: the first also warms up, and short ones are easily disturbed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from lengthbench import engine, plan, registry
from lengthbench.corpora import source
from lengthbench.errors import OutOfMemory
from lengthbench.model import Card, LoadOptions, Model
from lengthbench.probes.probe import beyond
from lengthbench.run.table import cell
from lengthbench.trials import Trial

BUDGET = 32
"""Tokens that are generated."""
CHARACTERS = 8
"""Characters of text for a token: more than any tokenizer takes on average."""
PASSES, MOST, ENOUGH = 2, 10, 0.2
"""Passes a turn: at least, at most, and the seconds after which there are no more."""
Cell = tuple[int, str]
"""Length and phase."""


@dataclass(frozen=True)
class Timing:
    """One cell in one round."""

    status: str
    detail: str = ""
    n_tokens: int = 0
    seconds: float = 0.0
    """Of the quickest pass over `n_tokens`."""
    peak_memory_bytes: int = 0


class Side(Protocol):
    """What is timed against the others."""

    name: str
    phases: tuple[str, ...]
    """Those it can be asked for."""

    def turn(self, cells: Sequence[Cell], batch_tokens: int) -> Iterator[tuple[Timing, dict[str, Any]]]:
        """For each of the cells a timing, and the side's own columns."""
        ...


class Whole:
    """A model, loaded anew for each turn: only one is in memory, so the peak is its own."""

    phases: tuple[str, ...] = ("score", "generate")

    def __init__(self, card: Card, name: str) -> None:
        self.card, self.name = card, name

    def turn(self, cells: Sequence[Cell], batch_tokens: int) -> Iterator[tuple[Timing, dict[str, Any]]]:
        model = self.card.load()
        for length, phase in cells:
            yield _time(model, length, phase, batch_tokens), _columns(model)


class Bare:
    """A scheme in an untrained reference decoder that reaches the length; its updates run on the CPU."""

    phases: tuple[str, ...] = ("score", "generate", "train")

    def __init__(self, scheme: str, options: LoadOptions) -> None:
        self.name, self.options = scheme, options
        registry.parameters(registry.parse(scheme)[0])

    def turn(self, cells: Sequence[Cell], batch_tokens: int) -> Iterator[tuple[Timing, dict[str, Any]]]:
        from lengthbench.training import untrained

        for length, phase in cells:
            if phase != "train":
                model = untrained.card(self.name, length, self.options).load()
                yield _time(model, length, phase, batch_tokens), _columns(model)
                continue
            columns = _columns(untrained.card(self.name, length, LoadOptions(device="cpu")).load())
            batch = max(1, batch_tokens // length)
            try:
                seconds, peak = untrained.update(self.name, length, batch)
            except OutOfMemory as error:
                yield Timing("oom", str(error)), columns
            else:
                yield Timing("ok", "", batch * length, seconds, peak), columns


def _columns(model: Model) -> dict[str, Any]:
    """Its columns, and the hash of its weights, by which a resumed run knows it again."""
    card = model.card
    return {
        "model": card.name,
        "scheme": card.scheme,
        "scheme_params": cell(card.scheme_params),
        "train_length": card.train_length,
        "dtype": model.dtype,
        "device": model.device,
        "route": model.route,
        "weights": model.weights_sha256,
    }


def _time(model: Model, length: int, phase: str, batch_tokens: int) -> Timing:
    written = BUDGET if phase == "generate" else 0
    if written and not hasattr(model, "generate"):
        return Timing("unsupported", "it cannot generate text")
    limit = model.card.limit
    if limit is not None and length + written > limit:
        return Timing("unsupported", beyond(model.card, length + written))
    trials = _trials(model, length, written, max(1, batch_tokens // length) if not written else 1)
    the_plan = plan.make(trials, False, max(batch_tokens, length))
    timings: list[Timing] = []
    while len(timings) < PASSES or (len(timings) < MOST and sum(t.seconds for t in timings) < ENOUGH):
        timings.append(_pass(model, trials, the_plan))
        if timings[-1].status != "ok":
            return timings[-1]
    best = min(timings, key=lambda t: t.seconds)
    return Timing("ok", "", best.n_tokens, best.seconds, max(t.peak_memory_bytes for t in timings))


def _pass(model: Model, trials: Sequence[Trial], the_plan: plan.Plan) -> Timing:
    results = [result for _, found in engine.run(model, trials, the_plan) for result in found]
    failed = next((r for r in results if r.status != "ok"), None)
    if failed:
        return Timing(failed.status, failed.detail)
    outputs = [r.scores.output for r in results if r.scores is not None and r.scores.output is not None]
    n_tokens = sum(len(output) for output in outputs) if outputs else round(sum(r.fed for r in results))
    if not n_tokens:
        return Timing("error", "it ended its output before the first token")
    peak = max(r.peak_memory_bytes for r in results)
    return Timing("ok", "", n_tokens, sum(r.seconds for r in results), peak)


def _trials(model: Model, length: int, written: int, n: int) -> list[Trial]:
    """n windows of running text, one behind the other; text that is too short begins again."""
    text = source.read("novels").documents[0].text[: CHARACTERS * n * (length + 1)]
    tokens = np.resize(model.tokenizer.encode(text)[0], n * length + 1)
    if written:
        return [Trial(tokens[:length], np.zeros(0, np.int64), budget=written)]
    at = np.arange(1, length + 1)
    return [Trial(tokens[first : first + length + 1], at) for first in range(0, n * length, length)]
