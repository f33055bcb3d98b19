"""Retrieval: the same evidence at the start, in the middle and at the end of growing inputs, with controls.

    evidence   the fact is there              exact: every answer token is the model's first choice
    absent     filler of as many tokens       what guessing gives: a cell only counts if it beats this
    oracle     evidence and question alone    what the model can do at all
    decoy      a fact of the same form with another key

Evidence gain = loss of the answer in `absent` - loss in `evidence`, in nats: it tells of models that answer nothing,
too. choice: the answer beats wrong ones of its form by mean log-probability. Trials of one haystack begin alike, and
so do the answers of one context: plan.py feeds what they share once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from lengthbench import tasks
from lengthbench.errors import UserError
from lengthbench.model import Card
from lengthbench.probes import needle_tables, needle_verdict, probe
from lengthbench.probes.probe import Subject
from lengthbench.retrieval import frames, jsonl, prompt, scoring
from lengthbench.retrieval.haystack import Haystacks
from lengthbench.retrieval.prompt import Frame, Prompt
from lengthbench.trials import Scores, Trial

ARMS = ("evidence", "absent", "oracle", "decoy")
MODES = ("score", "generate")
LEAST_BUDGET = 32
TIMES = 8
"""Default lengths run from half the training length to this many times it."""
EVERYWHERE = "-"
"""Position of what has none: the oracle arm, and prompts made by others have `given`."""


@dataclass(frozen=True)
class Spot:
    """Which cell and trial a window belongs to."""

    task: str
    length: int
    position: str
    arm: str
    trial: int
    candidate: int
    """0: the right answer; further ones are wrong."""


@dataclass(frozen=True)
class Needle:
    lengths: tuple[int, ...] = ()
    """Empty: the training length x 0.5, 1, 2 .. 8."""
    positions: tuple[tuple[str, float], ...] = (("start", 0.0), ("middle", 0.5), ("end", 1.0))
    """(name, depth in 0..1)"""
    tasks: tuple[str, ...] = ()
    """Names or files; empty: `recall` for reference models, `needle` for others."""
    trials: int = 20
    arms: tuple[str, ...] = ("evidence", "absent", "oracle")
    choice: bool = True
    """Whether wrong answers are scored too."""
    jsonl: str | None = None
    """Prompts made by others, instead of tasks."""
    mode: str = "score"
    """score: the answer is fed and judged token by token; generate: the model writes, greedily."""
    template: str | None = None
    """none | chat | a file; None: chat where text is generated and the tokenizer has one."""
    answer_prefix: bool = True
    """Whether the task's words that lead into the answer are there."""
    budget: int | None = None
    """Tokens to generate; None: twice the longest answer, at least 32."""
    defaulted: bool = False

    command = "needle"
    schemas = needle_tables.SCHEMAS

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UserError(f"--trials {self.trials}: it must be 1 or more, for example 20")
        if self.mode not in MODES:
            raise UserError(f"--mode {self.mode}: it is one of {', '.join(MODES)}")
        if self.budget is not None and self.budget < 1:
            raise UserError(f"--budget {self.budget}: it must be 1 or more")
        for arm in self.arms:
            if arm not in ARMS:
                raise UserError(f"--arms '{arm}': it is one of {', '.join(ARMS)}")
        if "evidence" not in self.arms:
            raise UserError(f"--arms {','.join(self.arms)}: evidence is what the other arms are compared with; add it")
        names = [tasks.read(name).name for name in self.tasks]
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"--task {name}: two of that name; rename one file")
        if self.jsonl is not None and self.tasks:
            raise UserError("--jsonl and --task: prompts come from the one or the other")
        if self.jsonl is not None:
            jsonl.read(Path(self.jsonl))

    @property
    def spans(self) -> tuple[int, ...]:
        return self.lengths or (1,)

    @property
    def fed(self) -> tuple[int, ...]:
        return self.spans

    def resolve(self, cards: Sequence[Card]) -> "Needle":
        if self.jsonl is not None:
            return self
        own = self.tasks or ("recall" if all("training" in card.facts for card in cards) else "needle",)
        found = probe.default_lengths(replace(self, tasks=own), cards, TIMES)
        if found.defaulted:
            halves = {n // 2 for n in found.lengths if n // 2 >= 2}
            found = replace(found, lengths=tuple(sorted({*found.lengths, *halves})))
        return found

    def fit(self, sizes: Sequence[int]) -> "Needle":
        """Default lengths end where no text fills them."""
        prose = all(tasks.read(name).haystack.source == "prose" for name in self.tasks)
        if not self.defaulted or not prose:
            return self
        fitting = tuple(n for n in self.lengths if n <= max(sizes, default=0))
        return replace(self, lengths=fitting or self.lengths[:1])

    def work(self, subject: Subject) -> "Work":
        return Work(self, subject)

    def sentence(self, findings: Sequence[str]) -> str:
        return "\n".join(findings)


class Work:
    """One model's trials."""

    def __init__(self, asked: Needle, subject: Subject) -> None:
        self.asked, self.subject = asked, subject
        self.template = asked.template or frames.default(subject.tokenizer, asked.mode)
        self.frames: dict[str, Frame] = {}
        if asked.mode == "generate" and not subject.generates:
            raise UserError(f"{subject.card.name}: it cannot generate text; use --mode score")
        self.trials: list[Trial] = []
        self.prompts: dict[Spot, Prompt] = {}
        """Of every trial's right answer."""
        self.missing: dict[tuple[str, int], tuple[str, str]] = {}
        """(task, length) -> status and reason of what cannot be asked."""
        self.versions: dict[str, int] = {}
        self.tasks: dict[str, tasks.Task] = {}
        self.chances: dict[str, float | None] = {}
        self.notes: list[str] = []
        if asked.jsonl is not None:
            self._given(Path(asked.jsonl))
        for name in asked.tasks:
            self._task(tasks.read(name))
        if not self.trials and all(status == "too_short" for status, _ in self.missing.values()):
            raise UserError(next(iter(self.missing.values()))[1])

    def _task(self, task: tasks.Task) -> None:
        asked, subject, tokenizer = self.asked, self.subject, self.subject.tokenizer
        self.versions[task.name], self.tasks[task.name] = task.version, task
        self.chances[task.name] = 1 / (task.n_wrong + 1) if asked.choice and asked.mode == "score" else None
        haystacks = _haystacks(subject.texts, tokenizer)
        items = [prompt.prepare(task, subject.seed, trial, haystacks) for trial in range(asked.trials)]
        frame = self._frame(task.name, [item.answer_text for item in items])
        for length in asked.lengths:
            if subject.card.limit is not None and length > subject.card.limit:
                self.missing[task.name, length] = "unsupported", probe.beyond(subject.card, length)
                continue
            try:
                for trial, item in enumerate(items):
                    for name, depth in asked.positions:
                        for arm in asked.arms:
                            if arm != "oracle":
                                made = prompt.build(item, arm, length, depth, tokenizer, haystacks, frame)
                                self._add(Spot(task.name, length, name, arm, trial, 0), made)
            except prompt.LengthError as error:
                self.missing[task.name, length] = "too_short", str(error)
        for trial, item in enumerate(items):
            if "oracle" in asked.arms and any(spot.task == task.name for spot in self.prompts):
                made = prompt.build(item, "oracle", 0, 0.0, tokenizer, haystacks, frame)
                if subject.card.limit is None or made.length <= subject.card.limit:
                    self._add(Spot(task.name, 0, EVERYWHERE, "oracle", trial, 0), made)

    def _frame(self, task: str, answers: Sequence[str]) -> Frame:
        asked, tokenizer, budget = self.asked, self.subject.tokenizer, None
        if asked.mode == "generate":
            longest = max(len(tokenizer.encode(answer)[0]) for answer in answers)
            budget = asked.budget or max(LEAST_BUDGET, 2 * longest)
        made = frames.frame(self.template, tokenizer, self.subject.start, budget, asked.answer_prefix)
        self.frames[task] = made
        return made

    @property
    def facts(self) -> dict[str, Any]:
        """For the manifest: the format, and the shortest prompt of each task as the model reads it."""
        first: dict[str, Prompt] = {}
        for spot, made in self.prompts.items():
            if spot.arm == "evidence" and (spot.task not in first or made.length < first[spot.task].length):
                first[spot.task] = made
        shown = {task: made.text(self.subject.tokenizer) for task, made in first.items()}
        budgets = {task: frame.budget for task, frame in self.frames.items()}
        asked = {"mode": self.asked.mode, "template": self.template, "answer_prefix": self.asked.answer_prefix}
        return {**asked, "budget": budgets, "normaliser": scoring.NORMALISER, "first_prompt": shown}

    def _given(self, path: Path) -> None:
        """Prompts made by others, each as it stands; their length is counted by this tokenizer."""
        self.versions[path.stem], self.chances[path.stem] = 1, None
        rows = jsonl.read(path)
        frame = self._frame(path.stem, [", ".join(given.outputs) for given in rows])
        for trial, given in enumerate(rows):
            made = jsonl.build(given, self.subject.tokenizer, frame)
            limit = self.subject.card.limit
            length = given.length or made.length
            if limit is not None and made.length > limit:
                self.missing[path.stem, length] = "unsupported", probe.beyond(self.subject.card, made.length)
            else:
                self._add(Spot(path.stem, length, "given", "evidence", trial, 0), made)

    def _add(self, spot: Spot, made: Prompt) -> None:
        """The right answer, and where choices are asked the wrong ones in its place."""
        self.prompts[spot] = made
        if self.asked.mode == "generate":
            nothing = np.zeros(0, np.int64)
            self.trials.append(Trial(made.tokens, nothing, made.start, spot, made.n_answer_tokens))
            return
        self.trials.append(Trial(made.tokens, made.scored, made.start, spot))
        if self.asked.choice and spot.arm == "evidence":
            before = made.tokens[: made.answer_at]
            for number, wrong in enumerate(made.wrong, 1):
                tokens = np.concatenate([before, wrong.tokens])
                self.trials.append(
                    Trial(tokens, made.answer_at + wrong.scored, made.start, replace(spot, candidate=number))
                )

    def n_wrong(self, spot: Spot) -> int:
        """Wrong answers that are scored beside the right one."""
        asked = self.asked.choice and self.asked.mode == "score" and spot.arm == "evidence"
        return len(self.prompts[spot].wrong) if asked else 0

    def reduce(self, trial: Trial, scores: Scores) -> dict[str, Any]:
        if scores.output is not None:
            return {"output": scores.output.tolist(), "ended": scores.ended}
        return {
            "nll": [float(x) for x in scores.nll],
            "first": "".join("01"[int(first)] for first in scores.first_choice),
        }

    def rows(self, identity: dict[str, Any], results: dict[int, dict[str, Any]]) -> dict[str, list[dict]]:
        return needle_tables.rows(self, identity, results)

    def finding(self, results: dict[int, dict[str, Any]]) -> str | None:
        rows = needle_tables.cells(self, results)
        said = needle_verdict.text(rows)
        return f"{self.subject.card.name}: {said}" if said else None


_HELD: dict[tuple[str, str], Haystacks] = {}
"""The haystacks in use: models with one tokenizer share them, and the items that were tried against them."""


def _haystacks(texts: Any, tokenizer: Any) -> Haystacks:
    key = texts.sha256, tokenizer.sha256
    if key not in _HELD:
        _HELD.clear()
        _HELD[key] = Haystacks(tokenizer, [document.text for document in texts.documents])
    return _HELD[key]
