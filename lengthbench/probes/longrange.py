"""Which targets profit from far context: the largest gains, and two fixed splits of all targets.

    repeat   far: the target's word last stood further than W back and still inside the L-window; other: the rest
    key      loss of cut - loss of full > 2 nats and loss of full < 2 nats; other: the rest

The second are the key tokens of LongPPL (Fang et al. 2024, arXiv 2410.23771, eq. 5-7, thresholds 2 and -2 of the log
likelihood), here chosen by the model itself with the base length as short context; LongPPL is exp of their mean
loss under full. They are chosen by their own gain, so their gain is no evidence; that of `repeat` is.
"""

import functools
import re
from collections.abc import Iterable

import numpy as np

UNSPACED = 12
"""Mean characters of a run of letters above which a text has no spaces between words."""
GRAM = 4
"""Characters that must be the same in such a text."""


@functools.lru_cache(maxsize=64)
def last_seen(text, document) -> np.ndarray:
    """(n,) how many tokens back the word of each token last began; 0 where it is new or no word.

    text: with `.text`; document: with `.tokens` and `.n_bytes`. In a text without spaces a character stands for a
    word, and is the same word where the three before it are the same too.
    """
    words = [(m.start(), m.end(), m.group().lower()) for m in re.finditer(r"\w+", text.text)]
    if not words or sum(b - a for a, b, _ in words) / len(words) > UNSPACED:
        words = [(i - 1, i, text.text[i - GRAM : i]) for i in range(GRAM, len(text.text) + 1)]
    back = np.zeros(len(document.tokens), np.int64)
    if not words:
        return back
    # Byte at which each character begins, then the token that completes a byte.
    sizes = np.array([0] + [len(c.encode()) for c in text.text]).cumsum()
    ends = np.cumsum(document.n_bytes)
    begins = np.searchsorted(ends, sizes[[a for a, _, _ in words]], side="right")
    after = np.searchsorted(ends, sizes[[b for _, b, _ in words]] - 1, side="right") + 1
    seen: dict[str, int] = {}
    for (_, _, word), begin, end in zip(words, begins.tolist(), after.tolist(), strict=True):
        if word in seen:
            back[begin:end] = begin - seen[word]
        seen[word] = begin
    return back


def far(back: np.ndarray, targets: np.ndarray, first: int, length: int, base: int) -> np.ndarray:
    """(n,) bool: the word of each target was last seen more than `base` back and inside its window of `length`.

    back: of the whole document; first: first target of the block, where windows begin to count.
    """
    context = (targets - first) % length + 1
    distance = back[targets]
    return (distance > base) & (distance <= context)


def key_tokens(cut: np.ndarray, full: np.ndarray, gain: float, loss: float) -> np.ndarray:
    """(n,) bool: LongPPL's key tokens."""
    return (cut - full > gain) & (full < loss)


def largest(gains: Iterable[tuple[float, tuple]], top: int) -> list[tuple[float, tuple]]:
    """The `top` largest, ties in the order of the text."""
    return sorted(gains, key=lambda entry: (-entry[0], entry[1]))[:top]
