"""Work in a thread of its own, so that Ctrl-C and SIGTERM are heard while a long pass runs."""

import threading
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")

HEARD_WITHIN = 0.2
"""Seconds until a signal is noticed."""


def interruptible(work: Iterator[T]) -> Iterator[T]:
    """Iterate `work`; the caller's thread only waits. An interrupt leaves the pass running: exit soon."""
    end = object()
    while True:
        box: list[tuple[object, BaseException | None]] = []
        thread = threading.Thread(target=_step, args=(work, end, box), daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(HEARD_WITHIN)
        item, error = box[0]
        if error is not None:
            raise error
        if item is end:
            return
        yield item  # type: ignore[misc]


def _step(work: Iterator[T], end: object, box: list[tuple[object, BaseException | None]]) -> None:
    try:
        box.append((next(work, end), None))
    except BaseException as error:  # raised again in the caller's thread, whatever it is
        box.append((None, error))
