"""Which tokens are fed and which are scored: pure integers, no text and no model.

A target t is predicted from the tokens before it; its context is how many of them were fed. Targets of a
document are numbered 1 .. n-1, a block is a stretch of them, `first` .. `last` inclusive.
"""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    begin: int
    """First real token fed."""
    end: int
    """Last target, so the token after the last one fed."""
    first: int
    """First target scored; all of first .. end are."""
    length: int
    """Tokens the window may feed, start token included."""

    @property
    def n_scored(self) -> int:
        return self.end - self.first + 1

    def contexts(self) -> range:
        """Context of each scored target, in real tokens."""
        return range(self.first - self.begin, self.end - self.begin + 1)


def nonoverlapping(first: int, last: int, length: int, start: bool = False) -> Iterator[Window]:
    """Cut the block's targets into runs of `length`, each fed from the token before its first target.

        first=1 last=8 length=4     fed          scored       with a start token
                                    0 1 2 3      1 2 3 4      S 1 2 3      1 2 3 4
                                    4 5 6 7      5 6 7 8      S 5 6 7      5 6 7 8

    Contexts 1..L, or 0..L-1 behind a start token. Windows never cross the block. fairseq; Press et al. 2022.
    """
    for begin in range(first - 1, last, length):
        end = min(begin + length, last)
        yield Window(begin + (start and end - begin == length), end, begin + 1, length)


def sliding(first: int, last: int, length: int, stride: int, start: bool = False) -> Iterator[Window]:
    """Score the block's targets `stride` at a time, each group from one window of at most `length` tokens.

        first=1 last=8 length=4 stride=2     fed          scored
                                             0 1          1 2
                                             0 1 2 3      3 4
                                             2 3 4 5      5 6
                                             4 5 6 7      7 8

    Contexts L-S+1..L, one less behind a start token; only the start of the document clips that. A window may
    reach back over the start of its block. stride = length is `nonoverlapping`, exactly.
    """
    for group in range(first, last + 1, stride):
        end = min(group + stride - 1, last)
        yield Window(max(0, end - length + start), end, group, length)


def cut(first: int, last: int, length: int, base: int, stride: int, start: bool = False) -> Iterator[Window]:
    """The targets of `nonoverlapping` at `length`, but never more than `base` tokens fed.

        first=1 last=8 length=8 base=4 stride=2     fed          scored
                                                    0 1 2 3      1 2 3 4      as at the base length
                                                    2 3 4 5      5 6          then sliding, inside the long window
                                                    4 5 6 7      7 8

    Contexts 1..W, then W-S+1..W. Where S divides W and W divides the length, lengths share these windows.
    """
    for begin in range(first - 1, last, length):
        end = min(begin + length, last)
        near = min(begin + base, end)
        yield from nonoverlapping(begin + 1, near, base, start)
        yield from sliding(near + 1, end, base, stride, start)


def window_end(first: int, last: int, length: int, stride: int, fed: int, start: bool = False) -> Iterator[Window]:
    """The last `stride` targets of every window of `length`, each group from the `fed` tokens before its last target.

    first=1 last=8 length=8 stride=2     fed = 8                fed = 4
                                         0 1 2 3 4 5 6 7        4 5 6 7        scored: 7 8
    """
    for end in range(first + length - 1, last + 1, length):
        yield Window(end - fed + start, end, end - stride + 1, fed)


def hf(n_tokens: int, length: int, stride: int) -> Iterator[Window]:
    """The windows of transformers' guide "Perplexity of fixed-length models", to the letter.

        n=9 length=4 stride=4     fed          scored
                                  0 1 2 3      1 2 3           4 is never scored: the first token of a window
                                  4 5 6 7      5 6 7           is not, so stride = length loses one a window
                                  8            (nothing)

    Contexts L-S..L-1. The guide feeds a window's last token too, which changes no loss; it is not fed here.
    """
    done = 0
    for begin in range(0, n_tokens, stride):
        end = min(begin + length, n_tokens)
        first = max(done, begin + 1)
        if first < end:
            yield Window(begin, end - 1, first, length)
        done = end
        if end == n_tokens:
            break


def clipped(window: Window, stride: int, start: bool = False) -> int:
    """How many of the window's targets have less context than length - stride + 1 (one less behind a start)."""
    least = window.length - stride + 1 - start
    return sum(context < least for context in window.contexts())
