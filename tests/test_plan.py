"""The plan feeds as little as it can and gives the plain way's numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lengthbench import engine, plan, windows
from lengthbench.errors import OutOfMemory
from lengthbench.model import Card, LoadOptions
from lengthbench.models import catalog
from lengthbench.trials import Scores, Trial

TOKENS = np.random.default_rng(0).integers(0, 256, 20_000).astype(np.int32)


def trial(window, start=None, key=None):
    return Trial(
        TOKENS[window.begin : window.end + 1], np.arange(window.first, window.end + 1) - window.begin, start, key
    )


def sweep(lengths, n_targets, start=None):
    return [trial(w, start, n) for n in lengths for w in windows.nonoverlapping(1, n_targets, n, start is not None)]


class Echo:
    """Loss = token id + context / 1000, so that a wrong row or target shows; counts what it is fed."""

    device = "cpu"

    def __init__(self, most=None, bytes_a_token=0):
        self.most, self.bytes_a_token, self.fed = most, bytes_a_token, []
        self.card = Card("echo", "none", {}, None, "unknown", None, True, lambda: self)

    def score(self, trials):
        assert len({t.n_fed for t in trials}) == 1
        if self.most is not None and sum(t.n_fed for t in trials) > self.most:
            raise OutOfMemory("too much")
        self.fed += [t.n_fed for t in trials]
        return [Scores((t.targets + t.scored / 1000).astype(np.float32), t.targets % 2 == 0) for t in trials]

    def extra_bytes(self, n_fed, batch):
        return self.bytes_a_token * n_fed * batch


def run(model, trials, stable=True, batch_tokens=64):
    made = plan.make(trials, stable, batch_tokens)
    return {r.trial: r for _, results in engine.run(model, trials, made) for r in results}, made


@pytest.mark.parametrize("start", [None, 7])
def test_a_sweep_over_doublings_feeds_half_the_lengths(start):
    trials = sweep((16, 32, 64, 128), 128 * 6, start)
    model = Echo()
    results, made = run(model, trials)
    assert sum(model.fed) == made.n_fed == (4 + 1) * 128 * 6 // 2
    for number, t in enumerate(trials):
        assert np.array_equal(results[number].scores.nll, Echo().score([t])[0].nll)
        assert np.array_equal(results[number].scores.first_choice, t.targets % 2 == 0)
    assert sum(r.fed for r in results.values()) == pytest.approx(made.n_fed)


def test_without_prefix_stability_only_equal_trials_share():
    trials = sweep((16, 32), 64) + sweep((32,), 64)
    model = Echo()
    results, _ = run(model, trials, stable=False)
    assert sorted(model.fed) == [16] * 4 + [32] * 2 and len(results) == 8


def test_a_start_token_is_part_of_the_prefix():
    window = next(windows.nonoverlapping(1, 16, 16))
    trials = [trial(window), Trial(TOKENS[:17], np.arange(17), start=3), Trial(TOKENS[:17], np.arange(17), start=4)]
    assert len(plan.make(trials, True, 1).batches) == 3


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 40), st.integers(0, 39)), min_size=1, max_size=30),
    st.integers(1, 200),
)
@settings(max_examples=60)
def test_any_trials_get_their_own_losses(shapes, batch_tokens):
    trials = []
    for begin, size, skip in shapes:
        first = 1 + skip % size
        trials.append(Trial(TOKENS[begin : begin + size + 1], np.arange(first, size + 1)))
    results, made = run(Echo(), trials, batch_tokens=batch_tokens)
    assert sorted(results) == list(range(len(trials)))
    for number, t in enumerate(trials):
        assert np.array_equal(results[number].scores.nll, Echo().score([t])[0].nll)
    for batch in made.batches:
        assert len(batch) == 1 or sum(p.trial.n_fed for p in batch) <= batch_tokens


def test_a_batch_that_does_not_fit_is_halved():
    trials = sweep((16,), 16 * 8)
    model = Echo(most=40)
    results, _ = run(model, trials, batch_tokens=128)
    assert {r.status for r in results.values()} == {"ok"} and model.fed == [16] * 8


def test_what_never_fits_is_oom_and_the_shorter_lengths_go_on():
    trials = sweep((16, 32, 64), 64 * 2)
    results, _ = run(Echo(most=40), trials)
    assert {(trials[n].key, r.status) for n, r in results.items()} == {(16, "ok"), (32, "ok"), (64, "oom")}
    assert all(r.scores is None and r.detail == "too much" for n, r in results.items() if trials[n].key == 64)


def test_memory_is_estimated_before_it_is_taken(monkeypatch):
    monkeypatch.setattr(engine, "available", lambda: 1000)
    results, _ = run(Echo(bytes_a_token=20), sweep((16, 64), 64))
    assert [results[n].status for n in range(5)] == ["ok"] * 4 + ["oom"]
    assert "GiB are free" in results[4].detail


@pytest.mark.parametrize("scheme", ["none", "learned", "sinusoidal", "rope", "t5", "alibi"])
def test_shared_passes_give_the_plain_ways_losses(scheme):
    """On the shipped models: one pass for all prefixes against one pass for each window, 1e-4 nat a token."""
    (card,) = catalog.describe([f"reference:{scheme}"], [], LoadOptions())
    model = card.load()
    trials = sweep((32, 64, 128, 256), 256)
    results, made = run(model, trials, batch_tokens=256)
    assert made.n_fed == 5 * 256 // 2
    for number, t in enumerate(trials):
        assert np.abs(results[number].scores.nll - model.score([t])[0].nll).max() < 1e-4
