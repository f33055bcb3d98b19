"""Seeded draws that are the same in every process, on every machine and with every version of every library.

n-th number of a stream = SHA-256 of "key/n", taken modulo the bound     bias below 2^-200
"""

import hashlib
import string
from collections.abc import Sequence
from typing import Any, TypeVar

from lengthbench.errors import UserError
from lengthbench.tasks import Draw

ALPHABETS = {
    "digits": string.digits,
    "letters": string.ascii_lowercase,
    "capitals": string.ascii_uppercase,
    "hex": "0123456789abcdef",
}
TRIES = 200
"""Draws before a variable counts as having no value left."""
T = TypeVar("T")


class Stream:
    """Numbers that depend on the key alone."""

    def __init__(self, *key: Any) -> None:
        self.key, self.n = "/".join(map(str, key)), 0

    def below(self, bound: int) -> int:
        """0 .. bound-1."""
        digest = hashlib.sha256(f"{self.key}/{self.n}".encode()).digest()
        self.n += 1
        return int.from_bytes(digest, "big") % bound

    def one(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in values]


def value(draw: Draw, stream: Stream) -> Any:
    """One value: text, or a table of texts for a choice of tables."""
    if draw.kind in ALPHABETS:
        alphabet = ALPHABETS[draw.kind]
        # A leading zero would be lost wherever the answer is read as a number.
        first = alphabet[1:] if draw.kind == "digits" and draw.size > 1 else alphabet
        return stream.one(first) + "".join(stream.one(alphabet) for _ in range(draw.size - 1))
    if draw.kind == "choice":
        return stream.one(draw.lists[0])
    if draw.kind == "parts":
        return draw.between.join(str(stream.one(one)) for one in draw.lists)
    return draw.between.join(map(str, stream.shuffled(draw.lists[0])[: draw.size]))


def fresh(name: str, draw: Draw, stream: Stream, used: set[str]) -> Any:
    """A value that is not among `used`, to which it is added."""
    for _ in range(TRIES):
        found = value(draw, stream)
        if str(found) not in used:
            used.add(str(found))
            return found
    raise UserError(f"task variable '{name}': no value is left after {len(used)} were used; give it more to draw from")
