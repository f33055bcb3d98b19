"""LongRoPE: RoPE with a divisor for each pair, found by search: one set for windows up to L0 tokens, one above.

    f_n / short_n if L <= L0, else f_n / long_n;   cos and sin times A = sqrt(1 + ln s / ln L0), with both sets

`short` and `long` name files with as many numbers as pairs turn, `factor` s is the extension they were made for and
`original` L0 the training length unless given. The set depends on the window's own length, not on the longest one.
Ding et al. 2024, arXiv 2402.13753; code: microsoft/LongRoPE, rope/longrope.py.
"""

from pathlib import Path

from torch import Tensor

from lengthbench import rotary
from lengthbench.scheme import Shape


class LongRope(rotary.Rotary):
    prefix_stable = False

    def __init__(
        self,
        shape: Shape,
        *,
        theta: float = 10000.0,
        partial: float = 1.0,
        factor: float = 0.0,
        original: int = 0,
        short: str = "",
        long: str = "",
    ) -> None:
        super().__init__(shape, theta, partial)
        original = original or shape.train_length
        self.need(factor=factor, original=original)
        if original < 2:
            raise self.refusal(f"original={original}; it is a length in tokens, 2 at least")
        divisors = {"short": self._numbers("short", short), "long": self._numbers("long", long)}
        self.original = original
        self.short = rotary.longrope(self.rotated, theta, divisors["short"])
        self.long = rotary.longrope(self.rotated, theta, divisors["long"])
        self.attention_scale = rotary.longrope_scale(factor, original)
        # The numbers, not the files' names: a file can change.
        self.params = {"theta": theta, "partial": partial, "factor": factor, "original": original, **divisors}
        self.params["attention_scale"] = self.attention_scale

    def frequencies(self, length: int) -> Tensor:
        return self.long if length > self.original else self.short

    def _numbers(self, key: str, file: str) -> list[float]:
        """A JSON list, or numbers between commas or white space."""
        pairs = self.rotated // 2
        if not file:
            raise self.refusal(f"it needs {key}, a file with a list of {pairs} numbers, for example {key}=factors.json")
        try:
            text = Path(file).read_text("utf-8").strip()
            found = [float(part) for part in text.removeprefix("[").removesuffix("]").replace(",", " ").split()]
        except (OSError, ValueError) as error:
            raise self.refusal(f"{key}={file} cannot be read as a list of numbers: {error}") from None
        if len(found) != pairs or not all(0 < number < float("inf") for number in found):
            raise self.refusal(f"{key}={file} has {len(found)} numbers; {pairs} above 0 are needed, one for each pair")
        return found
