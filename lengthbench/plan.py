"""Which passes through the model serve which trials: each token is fed as seldom as the definitions allow.

A trial whose tokens are a prefix of another's needs no pass of its own where the scheme is prefix-stable: the
longer pass holds its rows already. So a sweep over k doublings feeds (k+1)/2 times the text, not k times.

    L=4     x0 x1 x2 x3 . x4           one pass of 4        scores 1 2 3 4  and, for L=2,  1 2
    L=2     x0 x1 . x2   x2 x3 . x4    one pass of 2        scores 3 4

Windows that only begin alike (one haystack with its evidence at several depths, one context with several answers) run
in a chain, where the model can go back in what it has read: each is fed from where it departs from the one before.

    S x0 x1 x2 A x3 x4 q a     all 9
    S x0 x1 x2 A x3 x4 q b     1          keeps 8
    S x0 x1 x2 x3 A x4 q a     5          keeps 4

Passes of equal length are batched up to a budget of fed tokens. The plan is a function of the trials alone, never
of what is already done, so an interrupted run that goes on makes the very same passes.
"""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lengthbench.trials import Scores, Trial


@dataclass(frozen=True, eq=False)
class Pass:
    trial: Trial
    """What is really fed, and every row that some member needs."""
    members: tuple[int, ...]
    """Trials served, by their number in the list that was planned; the first is the longest."""
    columns: tuple[np.ndarray, ...]
    """For each member, where its scored tokens stand among those of `trial`."""

    def split(self, scores: Scores) -> list[tuple[int, Scores]]:
        """The scores of the pass -> those of each member."""
        return [
            (member, Scores(scores.nll[at], scores.first_choice[at], scores.output, scores.ended))
            for member, at in zip(self.members, self.columns, strict=True)
        ]

    def shares(self, trials: Sequence[Trial]) -> np.ndarray:
        """(n_members,) share of the cost that each member bears, by the tokens it would have fed alone."""
        fed = np.array([trials[m].n_fed for m in self.members], np.float64)
        return fed / fed.sum()


@dataclass(frozen=True, eq=False)
class Batch:
    passes: tuple[Pass, ...]
    """Of equal length, run together; or a chain, run one after the other."""
    shared: tuple[int, ...] | None = None
    """A chain: fed tokens that each pass has in common with the one before, and does not feed again."""

    @property
    def n_fed(self) -> int:
        """Tokens that are fed in all."""
        return sum(p.trial.n_fed for p in self.passes) - sum(self.shared or ())


@dataclass(frozen=True)
class Plan:
    batches: tuple[Batch, ...]

    @property
    def n_fed(self) -> int:
        """Tokens that will be fed in all."""
        return sum(batch.n_fed for batch in self.batches)

    @property
    def n_passes(self) -> int:
        return sum(len(batch.passes) for batch in self.batches)


LEAST_SHARED = 0.2
"""Windows are chained if that saves more than this share of what they would feed."""


def make(trials: Sequence[Trial], prefix_stable: bool, batch_tokens: int, chains: bool = False) -> Plan:
    """Merge, chain where `chains`, sort by length (longest first: a memory limit shows at once), batch the rest."""
    read = [n for n, t in enumerate(trials) if not t.budget]
    passes = [merge(trials, [read[m] for m in group]) for group in _groups([trials[n] for n in read], prefix_stable)]
    chained, passes = _chains(passes) if chains and prefix_stable else ([], passes)
    passes += [merge(trials, [n]) for n, t in enumerate(trials) if t.budget]
    passes.sort(key=lambda p: (-p.trial.n_fed, p.members[0]))
    batches: list[list[Pass]] = []
    for each in passes:
        room = batches and _alike(batches[-1][0].trial, each.trial)
        if room and (len(batches[-1]) + 1) * each.trial.n_fed <= batch_tokens:
            batches[-1].append(each)
        else:
            batches.append([each])
    every = [*chained, *(Batch(tuple(batch)) for batch in batches)]
    every.sort(key=lambda b: -max(p.trial.n_fed for p in b.passes))  # stable: batches of a length keep their order
    return Plan(tuple(every))


def _alike(a: Trial, b: Trial) -> bool:
    return (a.n_fed, a.budget) == (b.n_fed, b.budget)


def _chains(passes: Sequence[Pass]) -> tuple[list[Batch], list[Pass]]:
    """Chains of windows that begin alike, and the passes that are left.

    In the order of their tokens, the longest common beginning of any two windows is between neighbours.
    """
    order = sorted(passes, key=lambda p: p.trial.fed.astype(">i8").tobytes())
    shared = [0] + [_common(a.trial, b.trial) for a, b in itertools.pairwise(order)]
    chains: list[Batch] = []
    rest: list[Pass] = []
    begin = 0
    for end in range(1, len(order) + 1):
        if end < len(order) and shared[end] > LEAST_SHARED * order[end].trial.n_fed:
            continue
        own, kept = order[begin:end], [0, *shared[begin + 1 : end]]
        if len(own) > 1:
            chains.append(Batch(tuple(own), tuple(kept)))
        else:
            rest += own
        begin = end
    return chains, rest


def _common(before: Trial, after: Trial) -> int:
    """Fed tokens that `after` need not feed behind `before`: those they begin with, up to its first scored row."""
    a, b = before.fed, after.fed
    n = min(len(a), len(b))
    different = np.flatnonzero(a[:n] != b[:n])
    return int(min(different[0] if len(different) else n, after.rows[0]))


def merge(trials: Sequence[Trial], members: Sequence[int]) -> Pass:
    """One pass for trials that are all prefixes of the longest of them."""
    longest = max(members, key=lambda m: len(trials[m].tokens))
    scored = np.unique(np.concatenate([trials[m].scored for m in members]))
    members = (longest, *(m for m in members if m != longest))
    columns = tuple(np.searchsorted(scored, trials[m].scored) for m in members)
    own = trials[longest]
    return Pass(Trial(own.tokens, scored, own.start, budget=own.budget), members, columns)


def _groups(trials: Sequence[Trial], prefix_stable: bool) -> list[list[int]]:
    """Trials that share a pass: prefixes of one another, or, without prefix stability, equal ones."""
    sizes = sorted({len(t.tokens) for t in trials})
    order = sorted(range(len(trials)), key=lambda i: (-len(trials[i].tokens), i))
    host: dict[tuple, int] = {}
    groups: dict[int, list[int]] = defaultdict(list)
    for i in order:
        digests = _digests(trials[i], sizes)
        own = digests[len(trials[i].tokens)]
        if own in host:
            groups[host[own]].append(i)
            continue
        groups[i].append(i)
        for digest in digests.values() if prefix_stable else [own]:
            host.setdefault(digest, i)
    return list(groups.values())


def _digests(trial: Trial, sizes: list[int]) -> dict[int, tuple]:
    """For each size up to the trial's own, a key of (start token, that many first tokens)."""
    hasher, done, found = hashlib.blake2b(digest_size=16), 0, {}
    tokens = np.ascontiguousarray(trial.tokens, np.int64)
    for size in sizes:
        if size > len(tokens):
            break
        hasher.update(tokens[done:size].tobytes())
        done = size
        found[size] = (trial.start, size, hasher.copy().digest())
    return found
