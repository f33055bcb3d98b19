"""Keeps a run folder for one process: `.lock`, held by flock, which ends with the process however that ends.

The file names its holder and goes with the lock; kill -9 leaves it, but free. Where there is no flock (Windows, some
network disks) nobody is kept out.
"""

import errno
import os
import platform
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lengthbench.errors import UserError

try:
    import fcntl
except ImportError:
    fcntl = None

NAME = ".lock"
WITHOUT = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""What a disk says that knows no locks."""


class Lock:
    """Held from the beginning until `open()`, or until nobody knows it any more.

    Raises UserError if another process has the folder, or its disk takes no file.
    """

    def __init__(self, folder: Path) -> None:
        self.open: Callable[[], object] = lambda: None
        if fcntl is None:
            return
        path = folder / NAME
        try:
            file = _hold(path)
            while not _is_at(path, file):  # its last holder took it away in between
                os.close(file)
                file = _hold(path)
            self.open = weakref.finalize(self, _open, path, file)
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()} on {platform.node()}\n".encode())
        except BlockingIOError:
            raise UserError(f"{folder} is in use by process {_holder(path)}; end that, or give another --out") from None
        except OSError as error:
            raise UserError(f"--out {folder}: cannot write there: {error.strerror}") from None


def _hold(path: Path) -> int:
    assert fcntl
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in WITHOUT:
            os.close(file)
            raise
    return file


def _is_at(path: Path, file: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(file), path.stat())
    return False


def _open(path: Path, file: int) -> None:
    with suppress(OSError):  # the disk is gone
        path.unlink(missing_ok=True)
    os.close(file)


def _holder(path: Path) -> str:
    with suppress(OSError):
        return path.read_text("utf-8", errors="replace").strip() or "unknown"
    return "unknown"
