"""What an attribution says in words, from its intervals and never from its point values.

Use of far context is claimed only if content use is above 0 and the gain beyond the base exceeds what a stride S
may credit it with (measurement: the S-bound), both by their 95 % intervals.
"""

import math
from dataclasses import dataclass

from lengthbench import stats


@dataclass(frozen=True)
class Change:
    """Difference of two conditions on the same targets, in nats: positive where the second is better."""

    before: float
    after: float
    """Mean losses."""
    nats: float
    low: float | None = None
    high: float | None = None
    """95 % interval; None where there is none."""

    @property
    def known(self) -> bool:
        return self.low is not None and self.high is not None

    @property
    def up(self) -> bool:
        """Above 0 by its interval."""
        return self.low is not None and self.low > 0

    @property
    def down(self) -> bool:
        return self.high is not None and self.high < 0

    def __str__(self) -> str:
        value = f"{self.nats:+.3f} nat"
        return f"{value} [{self.low:.3f}, {self.high:.3f}]" if self.low is not None else value


@dataclass(frozen=True)
class Verdict:
    """One model at one length."""

    name: str
    method: str
    base: int
    length: int
    total: Change
    early: Change
    beyond: Change
    content: Change | None
    """None where the far context was not replaced."""
    exceeds_bound: bool
    """The gain beyond the base is above the S-bound by its interval."""

    @property
    def reading(self) -> str:
        """A few words for a table or a panel."""
        far = self.content is not None and self.content.up
        if not (self.total.known and self.beyond.known):
            return "no interval"
        if far and self.exceeds_bound:
            return "uses far context"
        if self.beyond.down:
            if self.total.down:
                return f"breaks beyond {self.base}" if (self.beyond.high or 0) < -math.log(2) else "worse when longer"
            return "early-token relief, damage beyond"
        if far:
            return "reads far context, gain too small to tell"
        if self.beyond.up and self.exceeds_bound and self.content is None:
            return f"gain beyond {self.base}, cause not tested"
        if self.early.up:
            return "early-token relief only" if self.total.up else "early-token relief, no net gain"
        return "no measurable change"

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"

    @property
    def text(self) -> str:
        """The whole sentence, without the model's name."""
        a, b = stats.ppl(self.total.before), stats.ppl(self.total.after)
        ratio = math.exp(min(-self.total.nats, 700))
        much = f"x {ratio:.3g}" if ratio >= 2 else f"{100 * (ratio - 1):+.1f} %"
        head = f"ppl {_four(a)} -> {_four(b)} from {self.base} to {self.length} ({much})"
        return f"{head}: {self._parts()}; {self._content()}"

    def _parts(self) -> str:
        if self.total.up or (not self.total.known and self.total.nats > 0):
            early, beyond = self.early.nats / self.total.nats, self.beyond.nats / self.total.nats
            return f"{100 * early:.0f} % early-token relief, {100 * beyond:.0f} % beyond {self.base}"
        return f"early-token relief {self.early}, beyond {self.base} {self.beyond}"

    def _content(self) -> str:
        if self.content is None:
            return "the far context was not replaced, so nothing shows that it is read"
        what = f"content beyond {self.base} tokens: {self.content}"
        if not self.content.known:
            return f"{what}, no interval"
        if self.content.up and self.exceeds_bound:
            return f"{what}, long-range use"
        if self.content.up and self.beyond.down:
            return f"{what}, so it is read, but the longer window does more harm"
        if self.content.up:
            return f"{what}, read, but the longer window gains no more than the stride allows"
        if self.content.down:
            return f"{what}: what stands there does harm, no evidence of long-range use"
        return f"{what}, no evidence of long-range use"


def _four(ppl: float) -> str:
    """Four significant digits, three below 10: a hundredth either way."""
    return f"{ppl:.2f}" if ppl < 10 else f"{ppl:#.4g}".rstrip(".")
