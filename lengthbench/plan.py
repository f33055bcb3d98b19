"""Which passes through the model serve which trials: each token is fed as seldom as the definitions allow.

A trial whose tokens are a prefix of another's needs no pass of its own where the scheme is prefix-stable: the
longer pass holds its rows already. So a sweep over k doublings feeds (k+1)/2 times the text, not k times.

    L=4     x0 x1 x2 x3 . x4           one pass of 4        scores 1 2 3 4  and, for L=2,  1 2
    L=2     x0 x1 . x2   x2 x3 . x4    one pass of 2        scores 3 4

Passes of equal length are batched up to a budget of fed tokens. The plan is a function of the trials alone, never
of what is already done, so an interrupted run that goes on makes the very same passes.
"""

import hashlib
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
            (member, Scores(scores.nll[at], scores.first_choice[at]))
            for member, at in zip(self.members, self.columns, strict=True)
        ]

    def shares(self, trials: Sequence[Trial]) -> np.ndarray:
        """(n_members,) share of the cost that each member bears, by the tokens it would have fed alone."""
        fed = np.array([trials[m].n_fed for m in self.members], np.float64)
        return fed / fed.sum()


@dataclass(frozen=True)
class Plan:
    batches: tuple[tuple[Pass, ...], ...]
    """Passes of equal length that run together."""

    @property
    def n_fed(self) -> int:
        """Tokens that will be fed in all."""
        return sum(p.trial.n_fed for batch in self.batches for p in batch)


def make(trials: Sequence[Trial], prefix_stable: bool, batch_tokens: int) -> Plan:
    """Merge, sort by length (longest first: a memory limit shows at once) and batch up to `batch_tokens`."""
    passes = [merge(trials, group) for group in _groups(trials, prefix_stable)]
    passes.sort(key=lambda p: (-p.trial.n_fed, p.members[0]))
    batches: list[list[Pass]] = []
    for each in passes:
        room = batches and batches[-1][0].trial.n_fed == each.trial.n_fed
        if room and (len(batches[-1]) + 1) * each.trial.n_fed <= batch_tokens:
            batches[-1].append(each)
        else:
            batches.append([each])
    return Plan(tuple(tuple(batch) for batch in batches))


def merge(trials: Sequence[Trial], members: Sequence[int]) -> Pass:
    """One pass for trials that are all prefixes of the longest of them."""
    longest = max(members, key=lambda m: len(trials[m].tokens))
    scored = np.unique(np.concatenate([trials[m].scored for m in members]))
    members = (longest, *(m for m in members if m != longest))
    columns = tuple(np.searchsorted(scored, trials[m].scored) for m in members)
    return Pass(Trial(trials[longest].tokens, scored, trials[longest].start), members, columns)


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
