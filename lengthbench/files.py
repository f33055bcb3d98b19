"""What is done with a file as such: hashed, to tell two sets of weights apart, or run, if it is a user's `file.py`."""

import hashlib
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from lengthbench.errors import UserError


def sha256(paths: Iterable[Path]) -> str:
    """SHA-256 over the bytes of the files, in the order given."""
    total = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while piece := file.read(1 << 22):
                total.update(piece)
    return total.hexdigest()


def module(path: Path) -> ModuleType:
    """Run a user's file.py as it stands now. Raises UserError if it is not there, and for what goes wrong in it.

    It is registered, since a dataclass looks up its own module; under its whole path, so that `random.py` does not
    become `random` for everyone.
    """
    try:
        body = path.read_bytes()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    found = ModuleType(str(path.resolve()))
    found.__file__ = str(path)
    with blamed(path):
        # Not importlib, which may run the compiled copy of a file that was changed within the same second.
        code = compile(body, str(path), "exec")
        sys.modules[found.__name__] = found
        exec(code, vars(found))
    return found


@contextmanager
def blamed(path: Path) -> Iterator[None]:
    """What is raised inside becomes a UserError with the line of the user's file that led to it."""
    try:
        yield
    except UserError:
        raise
    except (Exception, SystemExit) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where, line, said = str(path), lines[-1] if lines else None, str(error)
        if isinstance(error, SyntaxError) and error.lineno:
            where, line, said = error.filename or where, error.lineno, error.msg
        place = f"{where}, line {line}" if line else where
        what = ": ".join(filter(None, (type(error).__name__, " ".join(said.split()))))
        raise UserError(f"{place}: {what}; mend the file") from None
