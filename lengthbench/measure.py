"""A perplexity sweep over several models into one run folder.

    cards -> folder -> texts -> for each model: load, tokens, trials, plan, cost, run (journalled) -> tables -> plots

What can be refused is refused before the folder is made, and the folder before a text is read.
"""

import dataclasses
from collections import Counter
from typing import Any

from lengthbench import cost, engine, lengths, plan
from lengthbench.background import interruptible
from lengthbench.corpora import source
from lengthbench.corpora.text import Document, Texts, tokenize
from lengthbench.errors import UserError
from lengthbench.model import Card, Model
from lengthbench.models import catalog
from lengthbench.probes import blocks, perplexity, perplexity_tables, verdict
from lengthbench.request import TARGETS, Events, Outcome, Request
from lengthbench.run import table
from lengthbench.run.folder import RunFolder, open_run
from lengthbench.run.journal import Journal
from lengthbench.trials import Trial

FEWEST_BLOCKS = 5
LONGEST_DEFAULT = 32
"""Default lengths reach this many times the training length, as far as the text allows."""


def sweep(
    request: Request,
    wanted: tuple[int, ...] | None,
    protocols: tuple[str, ...] = ("nonoverlapping",),
    stride: int | None = None,
    events: Events | None = None,
) -> Outcome:
    """Perplexity at each of `wanted` lengths (None: training length x 1..32) for each model and scheme."""
    events = events or Events()
    cards = catalog.describe(request.models, request.schemes, request.options)
    probe = perplexity.Perplexity(wanted or _default_lengths(cards), protocols, stride)
    lengths.block(probe.lengths)
    _check_limits(cards, probe.lengths, events)
    folder = None
    if request.keep and not request.dry_run:
        settings = dataclasses.asdict(request) | {"lengths": wanted, "protocols": protocols, "stride": stride}
        for place in ("out", "resume", "dry_run", "keep"):
            del settings[place]
        folder = open_run(request.out, "ppl", [c.name for c in cards], settings, request.resume)
    try:
        texts = source.read(
            request.data, column=request.column, split=request.split, join=request.join, longest=probe.lengths[-1]
        )
        for note in texts.notes:
            events.note(note)
        return _Sweep(request, probe, wanted is None, texts, folder, events).run(cards)
    except UserError:
        if folder:
            folder.refuse()
        raise


def _default_lengths(cards: list[Card]) -> tuple[int, ...]:
    known = sorted({c.train_length for c in cards if c.train_length})
    if not known:
        raise UserError(f"{cards[0].name}: its training length is unknown; say --lengths, for example 512..8192")
    return tuple(sorted({n << k for n in known for k in range(LONGEST_DEFAULT.bit_length())}))


def _check_limits(cards: list[Card], wanted: tuple[int, ...], events: Events) -> None:
    """Say what cannot be run before any text is read; refuse if nothing can."""
    for card in cards:
        for warning in card.warnings:
            events.note(warning)
        if card.limit is not None and wanted[-1] > card.limit:
            events.note(f"{card.name}: {_beyond(card, wanted[-1])}")
    if all(card.limit is not None and wanted[0] > card.limit for card in cards):
        card = cards[0]
        raise UserError(f"{card.name}: {_beyond(card, wanted[0])}; use --lengths up to {card.limit}, or another model")


def _beyond(card: Card, length: int) -> str:
    return f"its {card.scheme} positions end at {card.limit}, length {length} was asked for"


class _Sweep:
    """The state of one run: what has been read and measured so far."""

    def __init__(
        self,
        request: Request,
        probe: perplexity.Perplexity,
        defaulted: bool,
        texts: Texts,
        folder: RunFolder | None,
        events: Events,
    ) -> None:
        self.request, self.probe, self.texts, self.folder, self.events = request, probe, texts, folder, events
        self.defaulted = defaulted
        """Whether nobody asked for these lengths, so that the text may cut them."""
        self.journal = Journal(folder.path) if folder else None
        self.tables: dict[str, list[dict[str, Any]]] = {"ppl": [], "blocks": [], "positions": []}
        self.changes: list[verdict.Change] = []
        self.manifest: list[dict[str, Any]] = []
        self.tokenized: tuple[str, list[Document]] = ("", [])
        self.selection: blocks.Selection | None = None

    def run(self, cards: list[Card]) -> Outcome:
        try:
            for number, card in enumerate(cards):
                _Measurement(self, number, card).run()
        except KeyboardInterrupt:
            self._write("interrupted")
            raise
        if self.tables["ppl"] and all(row["status"] == "too_short" for row in self.tables["ppl"]):
            if self.journal:
                self.journal.remove()
            raise UserError(f"--data {self.texts.name}: {self.tables['ppl'][0]['detail']}")
        self._write("complete")
        folder = self.folder.path if self.folder else None
        return Outcome(self.tables, folder, verdict.sentence(self.changes))

    def documents(self, model: Model) -> list[Document]:
        """Tokens of the texts; kept as long as the next model has the same tokenizer."""
        if self.tokenized[0] != model.tokenizer.sha256:
            self.tokenized = (model.tokenizer.sha256, tokenize(self.texts, model.tokenizer))
        return self.tokenized[1]

    def select(self, documents: list[Document]) -> blocks.Selection:
        """The blocks to score; said once, and again where a tokenizer changes them."""
        sizes = [len(d.tokens) for d in documents]
        if self.defaulted:
            self._trim(sizes)
        most = self.request.max_tokens or max(TARGETS, FEWEST_BLOCKS * lengths.block(self.probe.lengths))
        selection = blocks.select(sizes, self.probe.lengths, most)
        if selection != self.selection:
            self.selection = selection
            for note in perplexity_tables.notes(self.texts.name, selection, max(sizes)):
                self.events.note(note)
        return selection

    def _trim(self, sizes: list[int]) -> None:
        """Default lengths end where the text has fewer than five blocks."""
        known = self.probe.lengths
        while len(known) > 1 and sum(max(0, n - 1) // lengths.block(known) for n in sizes) < FEWEST_BLOCKS:
            known = known[:-1]
        self.probe = dataclasses.replace(self.probe, lengths=known)
        self.defaulted = False

    def _write(self, status: str) -> None:
        """Tables, manifest and, once complete, plots; a cell that is not finished has no row."""
        if not self.folder or not self.journal:
            return
        for schema in perplexity_tables.SCHEMAS:
            table.write(self.folder.path, schema, self.tables[schema.name])
        if status == "complete":
            from lengthbench.plots.folder import draw

            draw(self.folder.path)
        self.folder.finish(
            status,
            models=self.manifest,
            lengths=list(self.probe.lengths),
            data={"name": self.texts.name, **self.texts.facts},
            rows_per_status=Counter(row["status"] for row in self.tables["ppl"]),
            sentence=verdict.sentence(self.changes),
        )
        if status == "complete":
            self.journal.remove()


class _Measurement:
    """One model of the sweep."""

    def __init__(self, sweep: _Sweep, number: int, card: Card) -> None:
        self.sweep, self.number, self.card = sweep, number, card

    def run(self) -> None:
        sweep, card = self.sweep, self.card
        model = card.load()
        for warning in self._found_on_loading(model):
            sweep.events.note(warning)
        documents = sweep.documents(model)
        selection = sweep.select(documents)
        start = self._start(model)
        trials = sweep.probe.trials(documents, selection, start, card.limit)
        the_plan = plan.make(trials, card.prefix_stable, sweep.request.batch_tokens)
        seconds = cost.estimate(model, the_plan, sweep.request.batch_tokens)
        sweep.events.begin(card, the_plan.n_fed, seconds)
        if not sweep.request.dry_run:
            results: dict[int, dict[str, Any]] = {}
            try:
                self._measure(model, trials, the_plan, results)
            finally:
                self._add(model, documents, selection, start, trials, results)
        sweep.events.end()

    def _found_on_loading(self, model: Model) -> list[str]:
        return [warning for warning in model.card.warnings if warning not in self.card.warnings]

    def _start(self, model: Model) -> int | None:
        bos = self.sweep.request.bos
        wanted = bos == "always" or (bos == "auto" and model.tokenizer.adds_start)
        if wanted and model.tokenizer.start is None:
            self.sweep.events.note(f"{self.card.name}: its tokenizer has no start token; none is fed")
        return model.tokenizer.start if wanted else None

    def _measure(
        self, model: Model, trials: list[Trial], the_plan: plan.Plan, results: dict[int, dict[str, Any]]
    ) -> None:
        """Fill `results`, by trial, from the journal and then from the model."""
        journal, events = self.sweep.journal, self.sweep.events
        sizes = [sum(p.trial.n_fed for p in batch) for batch in the_plan.batches]
        done = journal.finished(self.number, self._fingerprint(model, trials, the_plan)) if journal else {}
        for batch, rows in done.items():
            results.update((row["trial"], row) for row in rows)
            events.advance(sizes[batch])
        for batch, found in interruptible(engine.run(model, trials, the_plan, done.__contains__)):
            rows = [_record(trials[result.trial], result) for result in found]
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
            "data": self.sweep.texts.sha256,
            "trials": len(trials),
            "fed": the_plan.n_fed,
        }

    def _add(self, model, documents, selection, start, trials, results) -> None:
        """What is finished of this model -> rows, its sentence and its part of the manifest."""
        sweep, card = self.sweep, self.card
        identity = {
            "model": card.name,
            "scheme": card.scheme,
            "scheme_params": table.cell(card.scheme_params),
            "train_length": card.train_length,
            "dtype": model.dtype,
            "device": model.device,
            "route": model.route,
            "batch": sweep.request.batch_tokens,
            "bos": "none" if start is None else sweep.request.bos,
            "bos_token": start,
            "tokenizer": f"{model.tokenizer.name}:{model.tokenizer.sha256[:12]}",
            "data": sweep.texts.name,
        }
        longest = max(len(d.tokens) for d in documents)
        cells = sweep.probe.cells()
        missing = {cell: why for cell in cells if (why := self._missing(cell.length, selection, longest))}
        sums = perplexity.block_sums(trials, results)
        rows = perplexity_tables.rows(
            identity, cells, sums, perplexity.n_blocks(trials), missing, [d.name for d in documents], sweep.request.seed
        )
        for mark in self._found_on_loading(model):
            for row in rows["ppl"]:
                row["detail"] = "; ".join(filter(None, (row["detail"], mark)))
        for name, more in rows.items():
            sweep.tables[name] += more
        change = verdict.change(card.name, card.train_length, card.limit, cells, sums, sweep.request.seed)
        sweep.changes += [change] if change else []
        sweep.manifest.append(
            {
                **identity,
                "weights_sha256": model.weights_sha256,
                "tokenizer_sha256": model.tokenizer.sha256,
                "train_length_source": card.train_length_source,
                "limit": card.limit,
                "prefix_stable": card.prefix_stable,
                "warnings": list(model.card.warnings),
                **card.facts,
            }
        )

    def _missing(self, length: int, selection: blocks.Selection, longest: int) -> tuple[str, str] | None:
        """Status and reason of a length that cannot be run."""
        if self.card.limit is not None and length > self.card.limit:
            return "unsupported", _beyond(self.card, length)
        if length in selection.too_short:
            return "too_short", f"the longest document has {longest} tokens, length {length} needs {length + 1}"
        return None


def _record(trial: Trial, result: engine.Result) -> dict[str, Any]:
    """What the journal keeps of a trial."""
    scores = result.scores if result.status == "ok" else None
    return {
        "trial": result.trial,
        "status": result.status,
        "detail": result.detail,
        "sums": None if scores is None else perplexity.reduce(trial, scores),
        "seconds": result.seconds,
        "fed": result.fed,
        "peak_memory_bytes": result.peak_memory_bytes,
    }
