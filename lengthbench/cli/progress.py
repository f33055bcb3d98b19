"""What a person sees while a run goes on: a bar on a terminal, plain lines elsewhere, nothing with --quiet."""

import io
import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from lengthbench.model import Card
from lengthbench.request import Events

EVERY = 10.0
"""Seconds between plain lines."""


class Screen(Console):
    """Where things are printed; whatever ends the command, exit code and cursor are not rich's to change."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError  # to the guard: rich would exit with 1, which only a failed check does

    def show_cursor(self, show: bool = True) -> bool:
        return False  # never hidden: nothing would show it again after Ctrl-C or kill


class Shown(Events):
    def __init__(self, quiet: bool, verbose: bool = False) -> None:
        self.verbose = verbose
        self.console = Screen(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.bar = bar(self.console)

    def note(self, text: str) -> None:
        self.console.print(f"note: {text}", style="dim", markup=False)

    def detail(self, text: str) -> None:
        if self.verbose:
            self.console.print(f"  {text}", style="dim", markup=False)

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
        self.bar = bar(self.console)
        self.task = self.bar.add_task(card.name, total=max(1, n_fed), state="")
        self.bar.start()

    def advance(self, n_fed: int) -> None:
        self.fed += n_fed
        now = time.monotonic()
        speed = f"{self.fed / max(now - self.began, 1e-9):,.0f} tokens/s"
        self.bar.update(self.task, completed=self.fed, state=speed)
        if self.bar.disable and now - self.said > EVERY:
            self.said = now
            self.console.print(f"{self.name}: {100 * self.fed // max(1, self.total)} %, {speed}", markup=False)

    def end(self) -> None:
        """Take the bar away; any number of times, also before there is one."""
        self.bar.stop()


def bar(console: Console) -> Progress:
    """Name, bar, state and time left of a task; disabled where no line can be drawn over, for plain lines instead."""
    return Progress(
        TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[state]}", markup=False),
        TimeRemainingColumn(),
        console=console, transient=True, disable=console.quiet or not console.is_terminal or console.is_dumb_terminal,
    )  # fmt: skip


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def stdout() -> Console:
    """For tables: wide enough not to break them where there is no terminal; what the encoding lacks becomes `?`."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    terminal = sys.stdout is not None and sys.stdout.isatty()  # None: closed by the shell, `>&-`
    return Screen(highlight=False, width=None if terminal else 140)
