"""A value as the page shows it: with as many digits as a reader needs, the exact one in its tooltip.

How many is decided by what the column is: losses and differences to a ten-thousandth of a nat, perplexities to four
digits, rates in percent, lengths and counts whole.
"""

import json
import math
import re
from dataclasses import dataclass

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf", re.IGNORECASE)
SIGNED = ("nats", "gain", "s_bound", "evidence_gain", "above_best", "nll_difference")
PERCENT = ("share", "share_of_targets", "chance", "exact_difference")
LARGE = 1e7
"""From here on a number is written as a power of ten."""


@dataclass(frozen=True)
class Cell:
    text: str
    exact: str = ""
    """What the file says, where the text does not."""
    key: str = ""
    """What the cell is sorted by; empty sorts last."""
    look: str = ""
    """CSS class."""


def change(nats: str, low: str, high: str) -> Cell:
    """A difference with half the width of its interval."""
    if not is_number(nats):
        return Cell("")
    own = cell("nats", nats)
    if not (is_number(low) and is_number(high)):
        return own
    return Cell(f"{own.text} ± {(float(high) - float(low)) / 2:.2g}", f"{nats} [{low}, {high}]", own.key)


def parameters(value: str) -> Cell:
    """A scheme's parameters as --scheme takes them."""
    try:
        found = json.loads(value)
        return Cell(
            ",".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in found.items()), value, value
        )
    except (ValueError, AttributeError):
        return Cell(value, "", value)


def is_number(value: str) -> bool:
    return NUMBER.fullmatch(value) is not None


def cell(column: str, value: str) -> Cell:
    """`value` of `column` as it stands in a file."""
    if column == "scheme_params" and value:
        return parameters(value)
    if not is_number(value):
        return Cell(value, "", value, f"status {value}" if column == "status" and value.isidentifier() else "")
    number = float(value)
    text = say(column, number)
    return Cell(text, "" if text == value else value, _key(number))


def interval(column: str, low: str, high: str) -> Cell:
    """Both ends in one cell, sorted by the lower one."""
    if not (is_number(low) and is_number(high)):
        return Cell("")
    ends = [say(column, float(end)) for end in (low, high)]
    return Cell(f"[{ends[0]}, {ends[1]}]", f"{low} to {high}", _key(float(low)))


def say(column: str, value: float) -> str:
    """The number in the words of its column."""
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if column in PERCENT or column.endswith("_rate"):
        return f"{100 * value:.1f} %".replace("-", "−")
    if column in SIGNED:
        return _fixed(value, "+")
    if column.endswith("nll") or column.startswith("nll_") or column == "bits_per_byte":
        return _fixed(value, "")
    if column == "peak_memory_bytes":
        return f"{value / 2**20:,.0f} MiB"
    if column == "tokens_per_second":
        return f"{value:,.0f}"
    if column.endswith("ppl"):
        return _digits(value)
    if value == int(value):
        return f"{value:,.0f}" if column.startswith("n_") and value >= 0 else _whole(value)
    return _digits(value).rstrip("0").rstrip(".")


def _fixed(value: float, sign: str) -> str:
    """Four decimals; what would round to nothing keeps one digit."""
    if not value:
        return "0"
    if abs(value) < 5e-5:
        return f"{value:{sign}.0e}".replace("-", "−").replace("e−0", "e−")
    return f"{value:{sign}.4f}".replace("-", "−")


def _whole(value: float) -> str:
    return _power(value) if abs(value) >= LARGE else f"{value:.0f}".replace("-", "−")


def _digits(value: float) -> str:
    """Four significant digits."""
    if abs(value) >= LARGE or abs(value) < 1e-3:
        return _power(value)
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:,.{decimals}f}".replace("-", "−")


def _power(value: float) -> str:
    head, _, exponent = f"{value:.2e}".partition("e")
    return f"{head}e{int(exponent)}".replace("-", "−")


def _key(value: float) -> str:
    """As JavaScript reads it."""
    return repr(value).replace("inf", "Infinity")
