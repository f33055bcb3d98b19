"""What stands between a command and the shell: exit codes, one line for what went wrong, Ctrl-C at any time."""

import functools
import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer

from lengthbench import errors


def guarded(command: Callable[..., int | None]) -> Callable[..., None]:
    """Run `command`; turn what it returns or raises into the exit code of errors.py."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        try:
            signal.signal(signal.SIGTERM, _interrupt)
        except ValueError:
            pass  # not the main thread: somebody else's signals
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
            code = errors.OK
            _leave(code)
        except Exception:
            traceback.print_exc()
            say("internal error, please report the lines above")
            code = errors.INTERNAL
        raise typer.Exit(code)

    return run


def say(text: str) -> None:
    """One line on stderr."""
    print(f"lengthbench: {text}", file=sys.stderr, flush=True)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _leave(code: int) -> None:
    """End now: a forward pass may still be running in its thread."""
    try:
        sys.stdout.flush()
    except OSError:
        pass
    os._exit(code)
