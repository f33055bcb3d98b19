"""What a user asks of a measuring command, what the command tells meanwhile, and what comes out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.model import Card, LoadOptions

BATCH_TOKENS = 2048
"""Default of --batch-tokens: more is slower on a CPU."""
BOS_POLICIES = ("auto", "always", "never")


@dataclass(frozen=True)
class Request:
    models: tuple[Any, ...] = ("reference:all",)
    """Names as after --model, or from Python a model or module of one's own."""
    schemes: tuple[str, ...] = ()
    """Position schemes to put in place of the models' own."""
    data: str = "novels"
    column: str | None = None
    split: str | None = None
    join: str = "auto"
    max_tokens: int | None = None
    """Targets to score; None: the probe's default, or five blocks where those are more."""
    bos: str = "auto"
    options: LoadOptions = field(default_factory=LoadOptions)
    batch_tokens: int = BATCH_TOKENS
    seed: int = 0
    out: str | None = None
    """Folder for the run; None: a new one under results/."""
    resume: bool = False
    dry_run: bool = False
    """Plan and cost only: nothing is measured, no folder is made."""
    keep: bool = True
    """Whether there is a run folder at all; without one an interrupted run is lost."""

    def __post_init__(self) -> None:
        if self.bos not in BOS_POLICIES:
            raise UserError(f"--bos {self.bos}: it is one of {', '.join(BOS_POLICIES)}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UserError(f"--max-tokens {self.max_tokens}: it must be 1 or more, for example 49152")
        if self.batch_tokens < 1:
            raise UserError(f"--batch-tokens {self.batch_tokens}: it must be 1 or more, for example {BATCH_TOKENS}")


class Events:
    """What a command wants to hear while it waits; silent unless overridden."""

    def note(self, text: str) -> None:
        """A line a person should read."""

    def detail(self, text: str) -> None:
        """A line only those want who ask for more."""

    def begin(self, card: Card, n_fed: int, seconds: float | None) -> None:
        """A model is loaded and its passes are planned; `seconds` is an estimate."""

    def advance(self, n_fed: int) -> None:
        """Tokens were fed, or had been in an earlier part of the run."""

    def end(self) -> None:
        """The model is done."""


@dataclass(frozen=True)
class Outcome:
    tables: dict[str, list[dict[str, Any]]]
    """Rows by table name."""
    folder: Path | None
    """None where no folder was made."""
    sentence: str
    """The answer in words."""
