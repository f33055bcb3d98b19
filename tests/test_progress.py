"""Where there is a bar, and where there are lines."""

import io
import os
import re

import pytest
from rich.console import Console

from lengthbench.cli import progress


@pytest.mark.parametrize("term, terminal, quiet, drawn", [
    ("xterm", True, False, True),
    ("xterm", True, True, False),
    ("xterm", False, False, False),
    ("dumb", True, False, False),
])  # fmt: skip
def test_a_bar_is_drawn_only_where_it_can_be_drawn_over(monkeypatch, term, terminal, quiet, drawn):
    monkeypatch.setenv("TERM", term)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=terminal, quiet=quiet, width=100)
    bar = progress.bar(console)
    task = bar.add_task("own[bold].py:make", total=10, state="")
    bar.start()
    bar.update(task, completed=5, state="7 tokens/s", refresh=True)
    bar.stop()
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.getvalue())
    assert bar.disable is not drawn
    assert ("own[bold].py:make" in shown and "7 tokens/s" in shown) if drawn else shown == ""


def test_without_a_bar_there_is_a_line_every_ten_seconds(monkeypatch, capsys):
    from lengthbench.model import Card

    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    shown = progress.Shown(quiet=False)
    card = Card("own.py:make", "unknown", {}, None, "unknown", None, True, lambda: None)
    shown.begin(card, 400, 40.0)
    for now[0] in (105.0, 112.0, 115.0, 123.0):
        shown.advance(100)
    shown.end()
    assert capsys.readouterr().err.splitlines()[1:] == [
        "own.py:make: 50 %, 17 tokens/s",  # 200 tokens in 12 s
        "own.py:make: 100 %, 17 tokens/s",  # 400 in 23 s
    ]


def test_a_reader_that_has_had_enough_is_left_to_the_guard():
    """`| head -1`: rich would exit with 1, which is for a failed check alone."""
    reader, writer = os.pipe()
    os.close(reader)
    screen = progress.Screen(file=os.fdopen(writer, "w"))
    with pytest.raises(BrokenPipeError):
        screen.print("a line")


def test_a_table_is_printed_where_there_is_no_stdout_and_no_plus_minus(monkeypatch):
    monkeypatch.setattr("sys.stdout", None)  # what `>&-` makes of it
    progress.stdout().print("256 ± 0")
    body = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(body, encoding="ascii"))
    progress.stdout().print("256 ± 0")
    assert body.getvalue() == b"256 ? 0\n"


def test_the_cursor_stays(monkeypatch):
    """After Ctrl-C nobody would bring it back."""
    screen = io.StringIO()
    monkeypatch.setenv("TERM", "xterm")
    bar = progress.bar(progress.Screen(file=screen, force_terminal=True))
    bar.add_task("a", state="")
    bar.start()
    bar.stop()
    assert screen.getvalue() and "\x1b[?25l" not in screen.getvalue()
