"""Positions as people write them: `start,middle,end`, percentages such as `25%`, or `11` for an even grid."""

import re

from lengthbench.errors import UserError

NAMES = {"start": 0.0, "middle": 0.5, "end": 1.0}
EXAMPLE = "for example start,middle,end or 10%,50%,90% or 11"
MOST = 101
"""Positions of an even grid."""


def parse(text: str) -> tuple[tuple[str, float], ...]:
    """`text` -> (name, depth in 0..1), ascending, each once."""
    word = text.strip()
    if re.fullmatch(r"[0-9]+", word):
        n = int(word) if len(word) < 9 else MOST + 1
        if not 2 <= n <= MOST:
            raise UserError(f"--positions {word}: an even grid has 2 to {MOST} positions; {EXAMPLE}")
        return tuple(sorted({_named(i / (n - 1)) for i in range(n)}, key=lambda p: p[1]))
    return tuple(sorted({_position(part.strip(), text) for part in text.split(",")}, key=lambda p: p[1]))


def _position(word: str, text: str) -> tuple[str, float]:
    if word in NAMES:
        return word, NAMES[word]
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]+)?)%", word)
    if not match or float(match[1]) > 100:
        raise UserError(f"--positions '{text}': '{word}' is no position in a text; {EXAMPLE}")
    return _named(float(match[1]) / 100)


def _named(depth: float) -> tuple[str, float]:
    """start, middle and end keep their names, however they were written."""
    name = next((name for name, known in NAMES.items() if known == depth), None)
    return name or f"{100 * depth:.4g}%", depth
