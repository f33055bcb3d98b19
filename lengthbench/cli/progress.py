"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere, nothing with --quiet."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lengthbench.model import Card
from lengthbench.request import Events

EVERY = 10.0
"""Seconds between plain lines."""


class Shown(Events):
    def __init__(self, quiet: bool) -> None:
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.bar: Progress | None = None

    def note(self, text: str) -> None:
        self.console.print(f"note: {text}", style="dim", markup=False)

    def begin(self, card: Card, n_fed: int, seconds: float | None) -> None:
        about = "" if seconds is None else f", about {duration(seconds)}"
        known = (
            f"trained at {card.train_length} ({card.train_length_source})"
            if card.train_length
            else "training length unknown"
        )
        scheme = "" if card.name.endswith(card.scheme) else f"{card.scheme}, "
        self.console.print(f"{card.name}: {scheme}{known}; {n_fed:,} tokens to feed{about}", markup=False)
        self.name, self.total, self.fed = card.name, n_fed, 0
        self.began = self.said = time.monotonic()
        if self.console.is_terminal and not self.console.quiet:
            self.bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[speed]}"),
                TimeRemainingColumn(),
                console=self.console,
                transient=True,
            )
            self.task = self.bar.add_task(card.name, total=max(1, n_fed), speed="")
            self.bar.start()

    def advance(self, n_fed: int) -> None:
        self.fed += n_fed
        now = time.monotonic()
        speed = f"{self.fed / max(now - self.began, 1e-9):,.0f} tokens/s"
        if self.bar:
            self.bar.update(self.task, completed=self.fed, speed=speed)
        elif now - self.said > EVERY:
            self.said = now
            self.console.print(f"{self.name}: {100 * self.fed // max(1, self.total)} %, {speed}", markup=False)

    def end(self) -> None:
        if self.bar:
            self.bar.stop()
            self.bar = None


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def stdout() -> Console:
    """For tables: wide enough not to break them where there is no terminal."""
    return Console(highlight=False) if sys.stdout.isatty() else Console(highlight=False, width=140)
