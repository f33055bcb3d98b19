"""Losses of single targets: packed into the journal, and put back to their places in the text."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from lengthbench.probes.losses import Cell
from lengthbench.trials import Trial


def pack(nll: np.ndarray) -> str:
    """(n,) float32 losses as base64, little-endian: what the journal keeps where single targets are asked about."""
    return base64.b64encode(nll.astype("<f4").tobytes()).decode()


def unpack(text: str) -> np.ndarray:
    """The losses again, (n,) float32."""
    return np.frombuffer(base64.b64decode(text), "<f4")


def losses_of(trials: Sequence[Trial], results: dict[int, dict[str, Any]], cell: Cell) -> dict[tuple[int, int], tuple]:
    """(document, block) -> targets (n,) as numbered in the document, ascending, and their losses (n,) float64.

    Only what is measured and ok.
    """
    parts: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for number, trial in enumerate(trials):
        if trial.key.cell == cell and number in results and results[number]["status"] == "ok":
            at = np.arange(trial.key.first, trial.key.first + len(trial.scored))
            own = parts.setdefault((trial.key.document, trial.key.block), [])
            own.append((at, unpack(results[number]["nll"]).astype(np.float64)))
    found = {}
    for key, own in parts.items():
        at, nll = np.concatenate([a for a, _ in own]), np.concatenate([b for _, b in own])
        order = np.argsort(at)
        found[key] = at[order], nll[order]
    return found


def fall(at: np.ndarray, gain: np.ndarray, offset: np.ndarray, stride: int) -> tuple[float, int]:
    """How much cut - full falls from the first target of a group to its last: (sum over groups, groups).

    The S-bound. `cut` feeds S-1 tokens less than W before a group's first target, and what that costs is no use of
    anything beyond W. A straight line through the group's S differences gives it; full, on the same targets, takes
    away the noise of the text.

    at: (n,) targets; gain: (n,) cut - full; offset: (n,) places behind the window's first W targets, from 0.
    """
    groups = np.split(np.arange(len(at)), np.flatnonzero((np.diff(at) != 1) | (offset[1:] % stride == 0)) + 1)
    whole = [g for g in groups if len(g) == stride]
    if stride == 1 or not whole:
        return 0.0, len(whole)
    centred = np.arange(stride) - (stride - 1) / 2
    slopes = gain[np.array(whole)] @ centred / (centred @ centred)  # (groups,)
    return -float((stride - 1) * slopes.sum()), len(whole)
