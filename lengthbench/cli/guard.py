"""What stands between a command and the shell: exit codes, one line for what went wrong, Ctrl-C at any time."""

import errno
import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from lengthbench import errors
from lengthbench.cli import caches

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""A write that failed for want of room, whichever file it was."""


def guarded(command: Callable[..., int | None]) -> Callable[..., None]:
    """Run `command`; turn what it returns or raises into the exit code of errors.py."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            signal.signal(signal.SIGTERM, _interrupt)
        except ValueError:
            pass  # not the main thread: somebody else's signals
        caches.settle()
        with written():
            try:
                code = command(*args, **kwargs) or errors.OK
            except errors.UserError as error:
                say(str(error))
                code = errors.UNUSABLE
            except KeyboardInterrupt:
                say("interrupted; what was finished is kept, go on with --resume")
                code = errors.INTERRUPTED
                _leave(code)
            except BrokenPipeError:
                raise
            except Exception as error:
                if isinstance(error, OSError) and error.errno in FULL:
                    raise
                traceback.print_exc()
                say("internal error, please report the lines above")
                code = errors.INTERNAL
        raise typer.Exit(code)

    return run


class Shell(TyperGroup):
    """All commands; --help and --version, too, end with a line where they cannot be written."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        with written():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        with written():
            return super().invoke(ctx)


@contextmanager
def written() -> Iterator[None]:
    """All of stdout is out at the end; a reader that has gone is no failure, a full disk ends with exit code 2."""
    try:
        yield
        if sys.stdout is not None:  # None: closed by the shell, `>&-`
            sys.stdout.flush()
    except BrokenPipeError:
        _mute(sys.stdout)
        raise typer.Exit(errors.OK) from None
    except OSError as error:
        _mute(sys.stdout)
        say(f"cannot write {error.filename or 'the output'}: {error.strerror}; make room or send it elsewhere")
        raise typer.Exit(errors.UNUSABLE) from None


def say(text: str) -> None:
    """One line on stderr, also if a name in it has a line break or moves the cursor."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    try:
        print(f"lengthbench: {line}", file=sys.stderr, flush=True)
    except OSError:
        _mute(sys.stderr)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _mute(stream: Any) -> None:
    """What is left to write goes nowhere: Python would try once more at its end, and exit with 120."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, AttributeError):
        pass  # not a file: a test's or a notebook's


def _leave(code: int) -> None:
    """End now: a forward pass may still be running in its thread."""
    try:
        sys.stdout.flush()
    except OSError:
        pass
    caches.clear()
    os._exit(code)
