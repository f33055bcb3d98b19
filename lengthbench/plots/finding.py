"""What a split shows, in a few plain words, from its intervals: relief, use of what is far away, or damage.

    gain is early-token relief      early tokens > 0 and nothing from beyond the base length
    far context helps               beyond base > the stride's bound, and content use > 0
    breaks beyond N                 tokens beyond the base length cost over BREAKS nats

A sign counts where the 95 % interval leaves out zero; where there is no interval, beyond SLIGHT nats, and it says so.
Where the table has a `reading`, which was made from the blocks themselves, it is said instead of the first two.
"""

import math

import numpy as np

from lengthbench.plots import notes, style
from lengthbench.plots.split import Part, Split

BREAKS = math.log(2)
"""Nats: perplexity doubles."""
HURTS = 0.1
"""Nats: what counts as damage at the lengths before that."""
SLIGHT = 0.005


def label(split: Split) -> str:
    """The finding, and why it goes no further; the finding is of the longest length that has numbers."""
    return "; ".join(filter(None, [_finding(split), *notes.stops(split.once())]))


def breaks(split: Split) -> np.ndarray:
    """(n,) bool: lengths at which tokens beyond the base length do real damage."""
    return _harm(split) > BREAKS


def _harm(split: Split) -> np.ndarray:
    """(n,) nats that tokens beyond the base length cost at least."""
    beyond = split.part("beyond_base")
    return -np.where(np.isfinite(beyond.high), beyond.high, beyond.nats)


def sign(part: Part, i: int, above: float = 0.0) -> int:
    """1 or -1 where the component at length `i` surely lies above `above` or below zero, else 0."""
    low, high = part.low[i], part.high[i]
    if not math.isfinite(low) or not math.isfinite(high):
        low, high = part.nats[i] - SLIGHT, part.nats[i] + SLIGHT
    return 1 if low > above else -1 if high < 0 else 0


def longest(split: Split) -> int | None:
    """Place of the longest length that has numbers."""
    known = np.flatnonzero(np.isfinite(split.part("total").nats))
    return int(known[-1]) if len(known) else None


def _finding(split: Split) -> str:
    i = longest(split)
    if i is None:
        return ""
    unsure = "" if np.isfinite(split.part("total").low[i]) else " (no interval)"
    broken = np.flatnonzero(breaks(split))
    if len(broken):
        first, later = int(broken[0]), np.isfinite(split.part("beyond_base").nats[broken[0] :]).sum()
        if len(broken) == later:
            while first and _harm(split)[first - 1] > HURTS:
                first -= 1
            fine = split.lengths[first - 1] if first else split.base
            return f"breaks beyond {fine:.0f}{unsure}"
        return f"breaks at {', '.join(f'{split.lengths[k]:.0f}' for k in broken)}{unsure}"
    told = [word for word in split.at(split.lengths[i]).words("reading") if word != "no interval"]
    return told[0] if told else _cause(split, i) + unsure


def _cause(split: Split, i: int) -> str:
    early, total, content = (sign(split.part(name), i) for name in ("early_token", "total", "content_use"))
    beyond = sign(split.part("beyond_base"), i, split.bound()[i])
    if beyond > 0 and content > 0:
        return "part early-token relief, part far context" if early > 0 else "far context helps"
    if beyond > 0:
        known = math.isfinite(split.part("content_use").nats[i])
        return "longer input helps, but not by what it says" if known else "far tokens help; what they say: not tested"
    if early > 0 and total > 0:
        return "gain is early-token relief" + ("; far context is read, without net gain" if content > 0 else "")
    if beyond < 0:
        if total < 0:
            return "worse when longer"
        return f"tokens beyond {split.base:.0f} cost a little" + (", early ones gain it back" if early > 0 else "")
    if early > 0:
        return "early-token relief, without net gain"
    if content > 0:
        return "far context is read, without net gain"
    return {1: "better, from no one cause", 0: "no measurable change", -1: "worse when longer"}[total]


def figures(split: Split) -> str:
    """The numbers at the longest length: what the bars and curves say there."""
    i = longest(split)
    if i is None:
        return ""
    total = split.part("total")
    parts = []
    if np.isfinite([total.start[i], total.end[i]]).all() and max(total.start[i], total.end[i]) < 700:
        before, after = (style.number(math.exp(v)) for v in (total.start[i], total.end[i]))
        parts.append(f"perplexity {before} to {after}")
    whole, early = (value(split.part(name), i, bare=True) for name in ("total", "early_token"))
    beyond, content = (value(split.part(name), i) for name in ("beyond_base", "content_use"))
    if early and beyond:
        parts.append(f"total {whole} = early tokens {early}, beyond {split.base:.0f} {beyond}")
    parts += [f"content {content}"] if content else []
    return f"{split.base:.0f} to {split.lengths[i]:.0f}: " + "; ".join(parts)


def value(part: Part, i: int, bare: bool = False) -> str:
    """A component at length `i`, with its interval unless `bare`; nothing where it was not measured."""
    if not math.isfinite(part.nats[i]):
        return ""
    known = not bare and math.isfinite(part.low[i]) and math.isfinite(part.high[i])
    return nats(part.nats[i]) + (f" [{nats(part.low[i])}, {nats(part.high[i])}]" if known else "")


def nats(value: float) -> str:
    """+0.021, −3.05: a difference, with its sign."""
    decimals = 3 if abs(value) < 0.9995 else 2
    words = f"{value:+.{decimals}f}".replace("-", "−")
    return words if words.strip("+−0.") else "0"
