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
        assert len(batch.passes) == 1 or batch.n_fed <= batch_tokens


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


class Chained(Echo):
    """An echo that goes back: remembers what it has read, as a cache of keys would."""

    chains = True

    def score_chain(self, trials, shared):
        read, found = np.zeros(0, np.int64), []
        for t, keep in zip(trials, shared, strict=True):
            assert keep <= t.rows[0] and np.array_equal(read[:keep], t.fed[:keep]), "nothing it keeps is another's"
            read = t.fed
            self.fed.append(t.n_fed - keep)
            found += Echo().score([t])
        return found


def grid(sizes=(100, 4, 2), depths=(0, 25, 60, 100), answers=5):
    """A haystack with four tokens of evidence at each depth, a question, and several answers of two tokens."""
    hay, question = TOKENS[: sizes[0]], TOKENS[900:910]
    trials = []
    for depth in depths:
        for answer in range(answers):
            parts = [hay[:depth], TOKENS[800:804], hay[depth:], question, TOKENS[1000 + 2 * answer : 1002 + 2 * answer]]
            tokens = np.concatenate(parts)
            trials.append(Trial(tokens, np.arange(len(tokens) - 2, len(tokens)), 7))
    return trials


def test_windows_that_begin_alike_are_fed_from_where_they_part():
    """Start token, hay, evidence, hay, question and the first answer token: 116; the second is never fed."""
    trials = grid()
    made = plan.make(trials, True, 64, chains=True)
    assert len(made.batches) == 2, "with evidence at the start nothing is shared with other depths"
    # By depth: what the one before does not have, and for each further answer the two rows it is scored from.
    assert made.n_fed == 116 + 116 + (116 - 26) + (116 - 61) + 4 * 4 * 2
    model = Chained()
    results = {r.trial: r for _, found in engine.run(model, trials, made) for r in found}
    assert sum(model.fed) == made.n_fed == pytest.approx(sum(r.fed for r in results.values()))
    for number, t in enumerate(trials):
        assert np.array_equal(results[number].scores.nll, Echo().score([t])[0].nll)
    assert len(plan.make(trials, True, 64).batches) == 20, "a model that cannot go back reads everything"
    assert len(plan.make(trials, False, 64, chains=True).batches) == 20, "nor does one without prefix stability"


def test_a_chain_that_does_not_fit_is_run_apart(monkeypatch):
    monkeypatch.setattr(engine, "available", lambda: 10_000)

    class Big(Chained):
        def score_chain(self, trials, shared):
            raise OutOfMemory("keys of all layers")

    trials = grid()
    made = plan.make(trials, True, 64, chains=True)
    results = [r for _, found in engine.run(Big(), trials, made) for r in found]
    assert {r.status for r in results} == {"ok"} and len(results) == 20


def test_unlike_windows_are_not_chained():
    trials = sweep((16, 32, 64), 64 * 4)
    assert all(b.shared is None for b in plan.make(trials, True, 64, chains=True).batches)


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


@pytest.mark.parametrize("scheme", ["none", "learned", "sinusoidal", "rope", "t5", "alibi"])
def test_a_chain_gives_the_plain_ways_losses(scheme):
    (card,) = catalog.describe([f"reference:{scheme}"], [], LoadOptions())
    model = card.load()
    trials = grid((200, 4, 2), (0, 77, 200), 3)
    trials = [Trial(t.tokens, t.scored, None) for t in trials]
    made = plan.make(trials, True, 256, model.chains)
    assert made.n_fed < 0.3 * sum(t.n_fed for t in trials)
    results = {r.trial: r for _, found in engine.run(model, trials, made) for r in found}
    for number, t in enumerate(trials):
        plain = model.score([t])[0]
        assert np.abs(results[number].scores.nll - plain.nll).max() < 1e-4
        assert np.array_equal(results[number].scores.first_choice, plain.first_choice)


def test_a_long_chain_of_alibi_gives_the_plain_ways_losses():
    """Several chunks of rows, and a plain way that skips far keys."""
    (card,) = catalog.describe(["reference:alibi"], [], LoadOptions())
    model = card.load()
    trials = [Trial(t.tokens, t.scored, None) for t in grid((4500, 4, 2), (2000, 4500), 2)]
    found = model.score_chain(trials, (0, trials[0].rows[0], 2000, trials[0].rows[0]))
    for t, chained in zip(trials, found, strict=True):
        assert np.abs(chained.nll - model.score([t])[0].nll).max() < 1e-4
