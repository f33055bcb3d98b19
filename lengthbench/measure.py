"""One probe over several models into one run folder.

    cards -> folder -> texts -> for each model: load, tokens, trials, plan, cost, run (journalled) -> rows -> plots

What can be refused is refused before the folder is made, and the folder before a text is read.
"""

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

from lengthbench import cost, engine, plan
from lengthbench.background import interruptible
from lengthbench.corpora import source
from lengthbench.corpora.text import Document, Texts, tokenize
from lengthbench.errors import UserError
from lengthbench.model import Card, Model
from lengthbench.models import catalog
from lengthbench.probes.probe import Probe, Subject, Work, beyond
from lengthbench.request import Events, Outcome, Request
from lengthbench.run import table
from lengthbench.run.folder import RunFolder, open_run
from lengthbench.run.journal import Journal
from lengthbench.trials import Trial


def measure(request: Request, asked: Probe, events: Events | None = None) -> Outcome:
    """Run the probe for each model and scheme of the request."""
    events = events or Events()
    cards = catalog.describe(request.models, request.schemes, request.options)
    probe = asked.resolve(cards)
    _check_limits(cards, probe.fed, events)
    folder = None
    if request.keep and not request.dry_run:
        settings = dataclasses.asdict(request) | {"probe": dataclasses.asdict(asked)}  # type: ignore[call-overload]
        for place in ("out", "resume", "dry_run", "keep"):
            del settings[place]
        named = [m if isinstance(m, str) else type(m).__name__ for m in request.models]
        folder = open_run(request.out, probe.command, named, settings, request.resume)
    try:
        texts = source.read(
            request.data, column=request.column, split=request.split, join=request.join, longest=probe.spans[-1]
        )
        for note in texts.notes:
            events.note(note)
        return _Run(request, probe, texts, folder, events).run(cards)
    except UserError:
        if folder:
            folder.refuse()
        raise


def _check_limits(cards: list[Card], wanted: tuple[int, ...], events: Events) -> None:
    """Say what cannot be run before any text is read; refuse if nothing can."""
    for card in cards:
        for warning in card.warnings:
            events.note(warning)
        if card.limit is not None and wanted[-1] > card.limit:
            events.note(f"{card.name}: {beyond(card, wanted[-1])}")
    if all(card.limit is not None and wanted[0] > card.limit for card in cards):
        card = cards[0]
        raise UserError(f"{card.name}: {beyond(card, wanted[0])}; use --lengths up to {card.limit}, or another model")


class _Run:
    """The state of one run: what has been read and measured so far."""

    def __init__(self, request: Request, probe: Probe, texts: Texts, folder: RunFolder | None, events: Events) -> None:
        self.request, self.probe, self.texts, self.folder, self.events = request, probe, texts, folder, events
        self.journal = Journal(folder.path) if folder else None
        self.tables: dict[str, list[dict[str, Any]]] = {schema.name: [] for schema in probe.schemas}
        self.findings: list[Any] = []
        self.manifest: list[dict[str, Any]] = []
        self.tokenized: tuple[str, list[Document]] = ("", [])
        self.said: set[str] = set()

    def run(self, cards: list[Card]) -> Outcome:
        try:
            for number, card in enumerate(cards):
                _Measurement(self, number, card).run()
        except KeyboardInterrupt:
            self._write("interrupted")
            raise
        if self.summary and all(row["status"] == "too_short" for row in self.summary):
            if self.journal:
                self.journal.remove()
            raise UserError(f"--data {self.texts.name}: {self.summary[0]['detail']}")
        self._write("complete")
        folder = self.folder.path if self.folder else None
        return Outcome(self.tables, folder, self.probe.sentence(self.findings))

    @property
    def summary(self) -> list[dict[str, Any]]:
        return [row for name in self.summaries for row in self.tables[name]]

    @property
    def summaries(self) -> list[str]:
        """Names of the tables whose statuses count: the probe's first, or what it says itself."""
        return [schema.name for schema in getattr(self.probe, "summaries", self.probe.schemas[:1])]

    def documents(self, model: Model) -> list[Document]:
        """Tokens of the texts; kept as long as the next model has the same tokenizer."""
        if self.tokenized[0] != model.tokenizer.sha256:
            first = not self.tokenized[0]
            self.tokenized = (model.tokenizer.sha256, tokenize(self.texts, model.tokenizer))
            if first:
                self.probe = self.probe.fit([len(d.tokens) for d in self.tokenized[1]])
        return self.tokenized[1]

    def note(self, text: str) -> None:
        """Say it once a run."""
        if text not in self.said:
            self.said.add(text)
            self.events.note(text)

    def _write(self, status: str) -> None:
        """Tables, manifest and, once complete, plots; a cell that is not finished has no row."""
        if not self.folder or not self.journal:
            return
        for schema in self.probe.schemas:
            table.write(self.folder.path, schema, self.tables[schema.name])
        if status == "complete":
            from lengthbench.plots.folder import draw

            draw(self.folder.path)
        self.folder.finish(
            status,
            models=self.manifest,
            lengths=list(self.probe.spans),
            probe=dataclasses.asdict(self.probe),  # type: ignore[call-overload]
            data={"name": self.texts.name, **self.texts.facts},
            rows_per_status=Counter(row["status"] for row in self.summary),
            sentence=self.probe.sentence(self.findings),
        )
        if status == "complete":
            self.journal.remove()


class _Measurement:
    """One model of the run."""

    def __init__(self, run: _Run, number: int, card: Card) -> None:
        self.parent, self.number, self.card = run, number, card

    def run(self) -> None:
        run, request, card = self.parent, self.parent.request, self.card
        model = card.load()
        for warning in self._found_on_loading(model):
            run.events.note(warning)
        documents = run.documents(model)
        start = self._start(model)
        subject = Subject(
            model.card,
            model.tokenizer,
            documents,
            run.texts,
            start,
            request.max_tokens,
            request.seed,
            hasattr(model, "generate"),
        )
        work = run.probe.work(subject)
        for note in work.notes:
            run.note(note)
        chains = getattr(model, "chains", False)
        the_plan = plan.make(work.trials, card.prefix_stable, request.batch_tokens, chains)
        seconds = cost.estimate(model, the_plan, request.batch_tokens)
        run.events.begin(card, the_plan.n_fed, seconds)
        for line in _details(model, start, work.trials, the_plan):
            run.events.detail(line)
        if not request.dry_run:
            results: dict[int, dict[str, Any]] = {}
            try:
                self._measure(model, work, the_plan, results)
            finally:
                self._add(model, start, work, results)
        run.events.end()

    def _found_on_loading(self, model: Model) -> list[str]:
        return [warning for warning in model.card.warnings if warning not in self.card.warnings]

    def _start(self, model: Model) -> int | None:
        bos = self.parent.request.bos
        wanted = bos == "always" or (bos == "auto" and model.tokenizer.adds_start)
        if wanted and model.tokenizer.start is None:
            self.parent.events.note(f"{self.card.name}: its tokenizer has no start token; none is fed")
        return model.tokenizer.start if wanted else None

    def _measure(self, model: Model, work: Work, the_plan: plan.Plan, results: dict[int, dict[str, Any]]) -> None:
        """Fill `results`, by trial, from the journal and then from the model."""
        journal, events = self.parent.journal, self.parent.events
        sizes = [batch.n_fed for batch in the_plan.batches]
        done = journal.finished(self.number, self._fingerprint(model, work.trials, the_plan)) if journal else {}
        for batch, rows in done.items():
            results.update((row["trial"], row) for row in rows)
            events.advance(sizes[batch])
        for batch, found in interruptible(engine.run(model, work.trials, the_plan, done.__contains__)):
            rows = [_record(work, result) for result in found]
            if journal:
                journal.append({"model": self.number, "batch": batch, "results": rows})
            results.update((row["trial"], row) for row in rows)
            events.advance(sizes[batch])

    def _fingerprint(self, model: Model, trials: list[Trial], the_plan: plan.Plan) -> dict[str, Any]:
        """Everything that decides this model's rows and is known only once it is loaded."""
        return {
            "model": self.card.name,
            "weights": model.weights_sha256,
            "tokenizer": model.tokenizer.sha256,
            "scheme": f"{self.card.scheme} {table.cell(self.card.scheme_params)}",
            "dtype": model.dtype,
            "device": model.device,
            "data": self.parent.texts.sha256,
            "trials": len(trials),
            "fed": the_plan.n_fed,
        }

    def _add(self, model: Model, start: int | None, work: Work, results: dict[int, dict[str, Any]]) -> None:
        """What is finished of this model -> rows, its finding and its part of the manifest."""
        run, card = self.parent, self.card
        identity = {
            "model": card.name,
            "scheme": card.scheme,
            "scheme_params": table.cell(card.scheme_params),
            "train_length": card.train_length,
            "dtype": model.dtype,
            "device": model.device,
            "route": model.route,
            "batch": run.request.batch_tokens,
            "bos": "none" if start is None else run.request.bos,
            "bos_token": start,
            "tokenizer": f"{model.tokenizer.name}:{model.tokenizer.sha256[:12]}",
            "data": run.texts.name,
        }
        rows = work.rows(identity, results)
        for mark in self._found_on_loading(model):
            for row in (row for name in run.summaries for row in rows[name]):
                row["detail"] = "; ".join(filter(None, (row["detail"], mark)))
        for row in rows.get("ppl", ()):
            row["detail"] = "; ".join(filter(None, (row["detail"], _factors(card, row["length"]))))
        for name, more in rows.items():
            run.tables[name] += more
        finding = work.finding(results)
        run.findings += [] if finding is None else [finding]
        run.manifest.append(
            {
                **identity,
                "weights_sha256": model.weights_sha256,
                "tokenizer_sha256": model.tokenizer.sha256,
                "train_length_source": card.train_length_source,
                "limit": card.limit,
                "prefix_stable": card.prefix_stable,
                "warnings": list(model.card.warnings),
                **card.facts,
                **getattr(work, "facts", {}),
            }
        )


def _factors(card: Card, length: int) -> str:
    """LongRoPE: which of its two sets of factors a window of this length runs with."""
    if card.scheme != "longrope" or "original" not in card.scheme_params:
        return ""
    return "long factors" if length > card.scheme_params["original"] else "short factors"


def _details(model: Model, start: int | None, trials: Sequence[Trial], the_plan: plan.Plan) -> list[str]:
    """How the model is run and what its plan saves."""
    card = model.card
    alone = sum(t.n_fed for t in trials)
    return [
        f"scheme {card.scheme} {table.cell(card.scheme_params)}".rstrip()
        + f", limit {card.limit or 'none'}, prefix-stable: {'yes' if card.prefix_stable else 'no'}",
        f"{model.dtype} on {model.device}, attention {model.route}, start token {'none' if start is None else start}",
        f"{len(trials):,} windows in {the_plan.n_passes:,} passes and {len(the_plan.batches):,} batches; one pass "
        f"for each would feed {alone:,} tokens, x {alone / max(1, the_plan.n_fed):.2f}",
    ]


def _record(work: Work, result: engine.Result) -> dict[str, Any]:
    """What the journal keeps of a trial."""
    kept: dict[str, Any] = {"sums": None}
    if result.status == "ok" and result.scores is not None:
        kept = work.reduce(work.trials[result.trial], result.scores)
    return {
        "trial": result.trial,
        "status": result.status,
        "detail": result.detail,
        **kept,
        "seconds": result.seconds,
        "fed": result.fed,
        "peak_memory_bytes": result.peak_memory_bytes,
    }
