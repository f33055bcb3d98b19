"""Means, intervals and ratios: the only place that divides, in float64, once.

    nll = sum(nll_sum) / sum(n_scored)

Intervals resample whole blocks (documents, where there are 20 or more), because the tokens of a block are not
independent: 2,000 resamples, 95 % percentile. Below 20 units the percentile interval covers too little (84 %
instead of 95 % at 5 units), so a t interval on the units stands in; below 5 there is none.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
FEW = 20
"""Below this many units: the t interval."""
TOO_FEW = 5
"""Below this many units: no interval."""


@dataclass(frozen=True)
class Interval:
    low: float | None
    high: float | None
    why_none: str = ""
    """Why there is no interval; empty where there is one."""


Numbers = Sequence[float] | np.ndarray


def ratio(numerators: Numbers, denominators: Numbers) -> float:
    """Sum of the one over the sum of the other."""
    return float(np.sum(numerators, dtype=np.float64) / np.sum(denominators, dtype=np.float64))


def interval(numerators: np.ndarray, denominators: np.ndarray, key: str) -> Interval:
    """95 % interval of `ratio` over units (n,). `key` seeds the resampling: equal keys pair the draws."""
    a, b = np.asarray(numerators, np.float64), np.asarray(denominators, np.float64)
    n = len(a)
    if n < TOO_FEW:
        return Interval(None, None, f"no interval: blocks: {n}, needs {TOO_FEW}")
    if n < FEW:
        from scipy.stats import t

        mean = a.sum() / b.sum()
        # Linearised: the residuals of a ratio estimate, Cochran 1977, Sampling Techniques, eq. 6.13.
        error = math.sqrt(n / (n - 1) * np.sum((a - mean * b) ** 2)) / b.sum()
        half = float(t.ppf(0.975, n - 1)) * error
        return Interval(mean - half, mean + half)
    draws = generator(key).integers(0, n, (RESAMPLES, n))
    low, high = np.percentile(a[draws].sum(1) / b[draws].sum(1), [2.5, 97.5])
    return Interval(float(low), float(high))


def wilson(hits: int, n: int) -> tuple[float, float]:
    """95 % interval of a rate, inside 0..1 and never empty. Wilson 1927, J. Am. Stat. Assoc. 22, p. 209."""
    z = 1.959963984540054  # the 97.5 % point of the normal distribution
    rate, spread = hits / n, z * z / n
    middle = (rate + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(rate * (1 - rate) / n + spread / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def generator(key: str) -> np.random.Generator:
    """Random numbers that depend on `key` alone, in any process."""
    return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))


def ppl(nll: float) -> float:
    """exp(nll); infinite where that overflows."""
    try:
        return math.exp(nll)
    except OverflowError:
        return math.inf


def bits_per_byte(nll_sum: float, n_bytes: int) -> float:
    """Bits the model spends on a byte of text: comparable across tokenizers, unlike perplexity."""
    return nll_sum / (math.log(2) * n_bytes)
