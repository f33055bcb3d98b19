"""Means and intervals against values worked out by other means."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from lengthbench import stats


def test_ratio_weights_by_tokens():
    assert stats.ratio([1022.0, 9.0], [511, 1]) == 1031 / 512  # not the mean of 2 and 9


def test_ppl_and_bits():
    assert stats.ppl(0) == 1 and math.isinf(stats.ppl(800)) and stats.ppl(709.7) == math.exp(709.7)
    assert stats.bits_per_byte(math.log(256), 1) == 8


def test_below_five_units_there_is_no_interval():
    found = stats.interval(np.ones(4), np.ones(4), "0")
    assert found.low is None and found.high is None and "blocks: 4, needs 5" in found.why_none


def test_below_twenty_units_it_is_the_t_interval_of_the_mean():
    values = np.array([2.1, 2.5, 1.9, 2.2, 2.8, 2.0])
    found = stats.interval(values * 100, np.full(6, 100), "0")
    low, high = scipy_stats.t.interval(0.95, 5, values.mean(), scipy_stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


def test_from_twenty_units_on_it_agrees_with_scipys_bootstrap():
    rng = np.random.default_rng(1)
    values = rng.normal(3, 1, 60)
    found = stats.interval(values, np.ones(60), "0")
    other = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method="percentile", rng=rng
    ).confidence_interval
    assert found.low == pytest.approx(other.low, abs=0.02) and found.high == pytest.approx(other.high, abs=0.02)


@pytest.mark.parametrize("n", [6, 12, 30])
def test_it_covers_the_truth(n):
    """95 % of the intervals of a skewed quantity hold its mean, give or take."""
    rng = np.random.default_rng(n)
    hits = 0
    for number in range(300):
        values = rng.gamma(4, 0.5, n)
        found = stats.interval(values, np.ones(n), str(number))
        hits += found.low <= 2 <= found.high
    assert 0.89 <= hits / 300 <= 0.99


def test_equal_keys_pair_the_draws():
    values = np.random.default_rng(0).normal(3, 1, 40)
    one, two = (stats.interval(values + shift, np.ones(40), "7") for shift in (0, 1))
    assert two.low - one.low == pytest.approx(1, abs=1e-12) and two.high - one.high == pytest.approx(1, abs=1e-12)
    assert stats.interval(values, np.ones(40), "8").low != one.low
