"""What counts as a regression: metrics, and by how much each may get worse.

    ppl:1%                perplexity may rise by one per cent
    nll:0.01              loss may rise by 0.01 nat a token
    content_use:0.005     what far tokens say may be worth 0.005 nat less
    exact:0.05            five of a hundred answers may be lost
    tokens_per_second:20% speed may fall by a fifth

Without any rule: ppl:1%, content_use:0.005, exact:0.05. One per cent of perplexity is 0.00995 nat, the epsilon of the
context ladder: less is not worth a name there either, and other batches, kernels and dtypes move a mean loss by far
less. Content use of small models is a few hundredths of a nat, so half a hundredth is a part one would miss. A cell of
20 retrieval trials moves in steps of 0.05. Speed and memory have no default: they depend on who else computes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lengthbench import stats
from lengthbench.errors import UserError


@dataclass(frozen=True)
class Metric:
    tables: tuple[str, ...]
    """Tables whose rows have it."""
    column: str
    """Its column there."""
    up_is_worse: bool
    component: str = ""
    """Attribution: the only rows that have it."""
    sums: str = ""
    """Sums it is paired by; empty: nothing finer than the row is kept, so only the point is compared."""


_LOSS = ("ppl", "context")
METRICS = {
    "ppl": Metric(_LOSS, "ppl", True, sums="nll"),
    "nll": Metric(_LOSS, "nll", True, sums="nll"),
    "bits_per_byte": Metric(_LOSS, "bits_per_byte", True, sums="bits_per_byte"),
    "content_use": Metric(("attribution",), "nats", False, "content_use", "nats"),
    "length_effect": Metric(("attribution",), "nats", False, "length_effect", "nats"),
    "beyond_base": Metric(("attribution",), "nats", False, "beyond_base", "nats"),
    "total": Metric(("attribution",), "nats", False, "total", "nats"),
    "exact": Metric(("needle",), "exact_rate", False, sums="exact"),
    "choice": Metric(("needle",), "choice_rate", False, sums="choice"),
    "contains": Metric(("needle",), "contains_rate", False, sums="contains"),
    "answer_nll": Metric(("needle",), "answer_nll", True, sums="answer_nll"),
    "evidence_gain": Metric(("needle",), "evidence_gain", False, sums="evidence_gain"),
    "tokens_per_second": Metric(("speed", "ppl"), "tokens_per_second", False),
    "peak_memory_bytes": Metric(("speed", "ppl"), "peak_memory_bytes", True),
}


@dataclass(frozen=True)
class Rule:
    name: str
    """A key of METRICS."""
    amount: float
    """Tolerated change for the worse: a fraction of the baseline if `relative`, else in the metric's own unit."""
    relative: bool

    @property
    def metric(self) -> Metric:
        return METRICS[self.name]

    def __str__(self) -> str:
        return f"{self.name}:{100 * self.amount:g}%" if self.relative else f"{self.name}:{self.amount:g}"

    def applies(self, table: str, component: str, condition: str) -> bool:
        """Whether a row of `table` has this metric; a swapped context is no text that a model should do well on."""
        return table in self.metric.tables and self.metric.component in ("", component) and condition != "swap"

    def change(self, difference: float, baseline: float) -> float:
        """What a difference (nats for ppl, else in the metric's unit) is in the unit of `amount`."""
        if self.name == "ppl":
            try:
                ratio = math.expm1(difference)
            except OverflowError:
                ratio = math.inf
            return ratio if self.relative else baseline * ratio
        return stats.ratio([difference], [abs(baseline)]) if self.relative else difference

    def passed(self, change: float) -> bool:
        """Whether `change` is for the worse, and beyond what is tolerated."""
        return (change if self.metric.up_is_worse else -change) > self.amount

    def passed_upwards(self, change: float) -> bool:
        """The same for the better."""
        return (-change if self.metric.up_is_worse else change) > self.amount


DEFAULTS = (Rule("ppl", 0.01, True), Rule("content_use", 0.005, False), Rule("exact", 0.05, False))


def parse(words: Sequence[str]) -> tuple[Rule, ...]:
    """`NAME:AMOUNT[%]` each, also several by commas; the last of a name counts. None: the defaults."""
    found = {}
    for word in (part.strip() for given in words for part in given.split(",")):
        name, _, amount = word.partition(":")
        if name not in METRICS:
            raise UserError(f"--fail {word}: there is no metric '{name}'; there are: {', '.join(METRICS)}")
        relative = amount.endswith("%")
        try:
            value = float(amount.removesuffix("%"))
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise UserError(f"--fail {word}: the tolerance must be 0 or more, for example {name}:0.01 or {name}:1%")
        found[name] = Rule(name, value / 100 if relative else value, relative)
    return tuple(found.values()) or DEFAULTS
