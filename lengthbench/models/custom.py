"""A researcher's own model: `file.py:function` is called without arguments and returns it, no packaging needed.

Either an object with `score(trials)` and `tokenizer` (model.py), or a torch module that maps tokens (B, T) to
logits (B, T, V) over bytes; `train_length`, `limit`, `scheme` and `prefix_stable` are read from it where it has
them. The module's losses come from its full logits, since nothing is known of its head.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthbench import files
from lengthbench.errors import OutOfMemory, UserError
from lengthbench.model import Card, LoadOptions
from lengthbench.models.bytes import ByteTokenizer
from lengthbench.trials import Scores, Trial

if TYPE_CHECKING:
    from torch import Tensor


def describe(name: str, options: LoadOptions) -> Card:
    """Runs the user's function: only it knows the model."""
    file, _, function = name.rpartition(":")
    if options.scheme:
        raise UserError(f"{name}: --scheme {options.scheme} cannot be put into a model of your own")
    path = Path(file)
    make = getattr(files.module(path), function, None)
    if not callable(make):
        raise UserError(f"{name}: {path} has no function '{function}'")
    with files.blamed(path):
        own = make()
    return card_of(own, name, options, path)


def card_of(own: Any, name: str, options: LoadOptions, path: Path | None = None) -> Card:
    """The card of a model object that is already there: from the file at `path`, or from a notebook."""
    if not hasattr(own, "score") and not (callable(own) and hasattr(own, "parameters")):
        raise UserError(
            f"{name}: got {type(own).__name__}; a model is a torch module, or has score(trials) and tokenizer"
        )
    weights_sha256 = files.sha256([path]) if path else "unknown"
    train_length = options.train_length or getattr(own, "train_length", None)
    source = "--train-length" if options.train_length else "the model's train_length" if train_length else "unknown"
    card = Card(
        name=name,
        scheme=str(getattr(own, "scheme", "unknown")),
        scheme_params=dict(getattr(own, "scheme_params", {})),
        train_length=train_length,
        train_length_source=source,
        limit=getattr(own, "limit", None),
        prefix_stable=bool(getattr(own, "prefix_stable", True)),
        load=lambda: CustomModel(own, card, path, weights_sha256),
    )
    return card


class CustomModel:
    def __init__(self, own: Any, card: Card, path: Path | None, weights_sha256: str) -> None:
        self.own, self.card, self.path, self.weights_sha256 = own, card, path, weights_sha256
        self.tokenizer = getattr(own, "tokenizer", None) or ByteTokenizer()
        self.dtype, self.device, self.route = _dtype(own), getattr(own, "device", "cpu"), "own"
        if hasattr(own, "generate") and hasattr(own, "score"):
            self.generate = self._generate

    def score(self, trials: Sequence[Trial]) -> list[Scores]:
        with self._blamed():
            if not hasattr(self.own, "score"):
                return self._score(trials)
            found = list(self.own.score(trials))
            if [len(scores.nll) for scores in found] != [len(trial.scored) for trial in trials]:
                raise ValueError("score(trials) must return Scores for each trial, with a loss for each scored token")
            return found

    def _generate(self, trials: Sequence[Trial]) -> list[Scores]:
        with self._blamed():
            found = list(self.own.generate(trials))
            if len(found) != len(trials) or any(scores.output is None for scores in found):
                raise ValueError("generate(trials) must return Scores with an output for each trial")
            return found

    def _score(self, trials: Sequence[Trial]) -> list[Scores]:
        from lengthbench.models import torch_scoring
        from lengthbench.models.loss import NoHead

        device = next(self.own.parameters()).device
        head = NoHead(self.tokenizer.vocabulary, device)
        return torch_scoring.score(trials, self._logits, head)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """What goes wrong in the user's file is told with its line; in a notebook a traceback says more."""
        lost = None
        with files.blamed(self.path) if self.path else nullcontext():
            try:
                yield
            except OutOfMemory as error:  # no mistake: the batch is halved
                lost = error
        if lost:
            raise lost

    def _logits(self, tokens: "Tensor") -> "Tensor":
        """(B, T) -> (B, T, V); what is beyond the tokenizer's vocabulary is padding."""
        logits = self.own(tokens)
        shape, wanted = list(getattr(logits, "shape", ())), [*tokens.shape, self.tokenizer.vocabulary]
        if shape[:-1] != wanted[:-1] or shape[-1] < wanted[-1]:
            raise UserError(
                f"{self.card.name}: for tokens {wanted[:-1]} it returned {shape or type(logits).__name__}; "
                f"the logits must be {wanted}, one for each token of the tokenizer {self.tokenizer.name}"
            )
        return logits

    def extra_bytes(self, n_fed: int, batch: int) -> int:
        estimate = getattr(self.own, "extra_bytes", None)
        if not estimate:
            return batch * n_fed * self.tokenizer.vocabulary * 8
        with self._blamed():
            return int(estimate(n_fed, batch))


def _dtype(own: Any) -> str:
    first = next(iter(own.parameters()), None) if hasattr(own, "parameters") else None
    return str(getattr(first, "dtype", "float32")).removeprefix("torch.")
