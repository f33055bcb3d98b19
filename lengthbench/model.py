"""The model: whatever turns a trial into losses.

A kind of model is one file (or folder) in `models/`, with `describe(spec, options) -> Card`; a researcher's
own is any object with the attributes of `Model`. Nothing outside `models/` knows more of a model than this.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lengthbench.trials import Scores, Trial


@dataclass(frozen=True)
class LoadOptions:
    """What the user decides about loading; nothing here comes from the environment."""

    dtype: str = "auto"
    """auto | float32 | bfloat16 | float16. auto: as stored where the hardware is fast in it, else float32."""
    device: str = "auto"
    """auto | cpu | cuda | cuda:1 ..."""
    scheme: str | None = None
    """Position scheme to put in place of the model's own, as `registry.load` reads it."""
    train_length: int | None = None
    """Overrides what the model says of its training length."""
    allow_pickle: bool = False
    allow_remote_code: bool = False
    allow_missing: bool = False
    """Load although tensors are missing; every row is then marked."""


@dataclass(frozen=True)
class Card:
    """What is known of a model from its configuration alone, before a weight or a text is read."""

    name: str
    """As the user wrote it, for example `reference:alibi` or a folder."""
    scheme: str
    """Name of its position scheme, or `unknown`."""
    scheme_params: dict[str, Any]
    train_length: int | None
    """Tokens; None where nothing says."""
    train_length_source: str
    """How it is known: `trained`, `config.n_positions`, `claimed by config...`, `--train-length`, `unknown`."""
    limit: int | None
    """Longest window it can be fed, in tokens; None: no hard limit."""
    prefix_stable: bool
    """The loss at a place does not depend on what comes after it, not even on how much."""
    load: Callable[[], "Model"]
    """Reads the weights."""
    warnings: tuple[str, ...] = ()
    """What a reader of the numbers should know, a line each."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Everything else worth a line in the manifest: path, revision, config, notes."""


class Tokenizer(Protocol):
    """Text to token ids and back."""

    @property
    def name(self) -> str: ...
    @property
    def vocabulary(self) -> int:
        """Number of different tokens; a mean loss over its logarithm is worse than guessing."""
        ...

    @property
    def start(self) -> int | None:
        """The start token, or None where there is none."""
        ...

    @property
    def adds_start(self) -> bool:
        """Whether the tokenizer itself puts the start token in front (`--bos auto`)."""
        ...

    @property
    def sha256(self) -> str:
        """Of everything that decides the tokens; two models with equal ones share targets."""
        ...

    def encode(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Token ids (n,) without any special token, and the UTF-8 bytes each completes (n,); int32.

        The second sums to `len(text.encode())`.
        """
        ...

    def decode(self, tokens: np.ndarray) -> str: ...

    # Optional, of tokenizers that come with a chat template:
    #
    #   chat() -> (before, after) | None                what it puts around a user's message


class Model(Protocol):
    @property
    def card(self) -> Card: ...
    @property
    def tokenizer(self) -> Tokenizer: ...
    @property
    def dtype(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def route(self) -> str:
        """How attention is computed."""
        ...

    @property
    def weights_sha256(self) -> str: ...

    def score(self, trials: Sequence[Trial]) -> list[Scores]:
        """Losses of exactly the scored tokens. All trials have the same `n_fed`; no padding exists.

        Raises OutOfMemory if the batch does not fit; the engine then tries fewer at once.
        """
        ...

    # Optional, where a window can be continued from the keys and values of another:
    #
    #   chains: bool
    #   score_chain(trials, shared) -> list[Scores]     trial i keeps shared[i] fed tokens of trial i-1
    #
    # Optional, where text can be generated:
    #
    #   generate(trials) -> list[Scores]                greedy, at most `budget` tokens behind each; only `output`

    def extra_bytes(self, n_fed: int, batch: int) -> int:
        """Memory that scoring `batch` windows of `n_fed` tokens takes beside the weights, an upper estimate."""
        ...
