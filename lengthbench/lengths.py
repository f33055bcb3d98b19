"""Lengths as people write them: `512..8192` doubles, `512..2048+512` steps, commas join, `4k` is 4096."""

import math
import re

from lengthbench.errors import UserError

EXAMPLE = "for example 512..8192, 512..2048+512 or 256,1k,4k"
MOST_BLOCK = 4
"""A block may be this many times the largest length, to be divisible by every length."""
MOST = 4096
"""Lengths in one list: each is a row, and a pass over the text."""
LONGEST = 10**12
"""Tokens; no text has that many."""
SHOWN = 60
"""Characters of what the user wrote that a message repeats."""


def parse(text: str, option: str = "--lengths") -> tuple[int, ...]:
    """`text` -> the set of lengths, ascending. Descending ranges and repeated values give the same set."""
    found: set[int] = set()
    parts = [part.strip() for part in text.split(",")]
    if not all(parts):
        raise UserError(f"{option} '{text}': an empty entry; {EXAMPLE}")
    for part in parts:
        if ".." not in part:
            found.add(_length(part, text, option))
            continue
        ends, plus, step = part.partition("+")
        low, _, high = ends.partition("..")
        a, b = sorted((_length(low, text, option), _length(high, text, option)))
        found.update(_steps(a, b, _number(step, text, option), option) if plus else _doubles(a, b, option))
        if len(found) > MOST:
            raise _too_many(len(found), text, option)
    return tuple(sorted(found))


def _length(word: str, text: str, option: str) -> int:
    value = _number(word, text, option)
    if value < 2:
        raise UserError(f"{option} '{_cut(text)}': {value} is too short, a window feeds 2 tokens or more; {EXAMPLE}")
    return value


def _number(word: str, text: str, option: str) -> int:
    match = re.fullmatch(r"0*([0-9]+)(k?)", word.strip(), re.IGNORECASE | re.ASCII)
    if not match:
        raise UserError(f"{option} '{_cut(text)}': '{_cut(word.strip())}' is not a number of tokens; {EXAMPLE}")
    # By its digits first: Python refuses to read thousands of them.
    value = int(match[1]) * (1024 if match[2] else 1) if len(match[1]) <= len(str(LONGEST)) else LONGEST + 1
    if value > LONGEST:
        raise UserError(
            f"{option} '{_cut(text)}': {_cut(word.strip())} is too long, the limit is {LONGEST:,}; {EXAMPLE}"
        )
    return value


def _too_many(n: int, text: str, option: str) -> UserError:
    return UserError(f"{option} '{_cut(text)}': {n:,} lengths, at most {MOST:,} at once; {EXAMPLE}")


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def _doubles(low: int, high: int, option: str) -> list[int]:
    values = [low]
    while values[-1] < high:
        values.append(values[-1] * 2)
    if values[-1] != high:
        raise UserError(
            f"{option} {low}..{high}: doubling from {low} gives {values[-2]} and {values[-1]}, not {high}; "
            f"use {low}..{values[-2] if len(values) > 2 else values[-1]}, or steps as in {low}..{high}+{high - low}"
        )
    return values


def _steps(low: int, high: int, step: int, option: str) -> range:
    text = f"{low}..{high}+{step}"
    if step < 1:
        raise UserError(f"{option} {text}: a step is 1 token or more; {EXAMPLE}")
    values = range(low, high + 1, step)
    if len(values) > MOST:
        raise _too_many(len(values), text, option)
    if values[-1] != high:
        raise UserError(
            f"{option} {text}: steps of {step} from {low} reach {values[-1]}, not {high}; "
            f"use {low}..{values[-1]}+{step}"
        )
    return values


def block(lengths: tuple[int, ...]) -> int:
    """Targets a block, in tokens: the largest length, or the least common multiple of all where that is small.

    Every length divides it, so that every length scores exactly the same targets.
    """
    largest, multiple = max(lengths), math.lcm(*lengths)
    if multiple <= MOST_BLOCK * largest:
        return multiple
    bad = [n for n in lengths if largest % n]
    divisors = _divisors(largest)[1:]
    better = [min(divisors, key=lambda d: (abs(d - n), d)) for n in bad]
    good = sorted(set(lengths) - set(bad) | set(better))
    raise UserError(
        f"--lengths {_cut(','.join(map(str, lengths)))}: no block of text up to {MOST_BLOCK} x {largest} tokens is a "
        f"multiple of all of them; the nearest list that works is {','.join(map(str, good))}"
    )


def _divisors(n: int) -> list[int]:
    small = [d for d in range(1, math.isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})
