"""Rows about single targets: the largest content use with its text (tokens.csv), and two splits (splits.csv)."""

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthbench import stats
from lengthbench.probes import longrange
from lengthbench.probes.losses import Cell
from lengthbench.probes.perplexity_tables import MODEL_KEY
from lengthbench.run.table import Schema

if TYPE_CHECKING:
    from lengthbench.probes.attribution import Work

TOKENS = Schema(
    "tokens",
    (*MODEL_KEY, "length", "base_length", "rank"),
    ("gain", "cut_nll", "swap_nll", "full_nll", "doc", "target", "before", "text", "after"),
)
SPLITS = Schema(
    "splits",
    (*MODEL_KEY, "length", "base_length", "split", "part"),
    (
        "n_scored",
        "share_of_targets",
        "cut_nll",
        "full_nll",
        "nats",
        "nats_ci_low",
        "nats_ci_high",
        "longppl",
        "status",
        "detail",
    ),
)
Find = Callable[[Cell], dict[tuple[int, int], tuple]]
"""The losses of a cell's targets, as `targets.losses_of` gives them."""
BEFORE, AFTER = 48, 16
"""Tokens of text shown around a target."""


def tokens(work: "Work", find: Find, length: int) -> list[dict]:
    """The targets at window ends that gain most from what the far context says: swap - full, in nats."""
    stride = work.asked.end_of(work.base, length)
    cells = [Cell("window_end", length, stride, c) for c in ("cut", "swap", "full")]
    cut, swap, full = map(find, cells)
    gains = []
    for key in swap.keys() & full.keys() & cut.keys():
        sides = [dict(zip(at.tolist(), nll.tolist(), strict=True)) for at, nll in (cut[key], swap[key], full[key])]
        for target in sides[0].keys() & sides[1].keys() & sides[2].keys():
            losses = tuple(side[target] for side in sides)
            if losses[1] > losses[2]:
                gains.append((losses[1] - losses[2], (*key, target, losses)))
    rows = []
    for rank, (gain, (document, _, target, losses)) in enumerate(longrange.largest(gains, work.asked.top), 1):
        text = work.subject.documents[document].tokens
        decode = work.subject.tokenizer.decode
        rows.append(
            {
                "rank": rank,
                "gain": gain,
                **dict(zip(("cut_nll", "swap_nll", "full_nll"), losses, strict=True)),
                "doc": work.subject.documents[document].name,
                "target": target,
                "before": _line(decode(text[max(0, target - BEFORE) : target])),
                "text": _line(decode(text[target : target + 1])),
                "after": _line(decode(text[target + 1 : target + 1 + AFTER])),
            }
        )
    return rows


def _line(text: str) -> str:
    """On one line; a token that is part of a character shows as the replacement character."""
    return text.replace("\r", "").replace("\n", "⏎")


def splits(work: "Work", find: Find, length: int) -> list[dict]:
    """What cut - full is for the targets of either part, on all targets of which both losses are there."""
    asked, base = work.asked, work.base
    cut = find(Cell("cut", length, asked.stride_of("cut", base), "cut"))
    full = find(Cell("nonoverlapping", length, length, "full"))
    wanted = {(b.document, b.number): b.first for b in work.selection.blocks}
    if cut.keys() != wanted.keys() or full.keys() != wanted.keys():
        return []
    sums: dict[tuple[str, str], list[tuple[int, float, float]]] = defaultdict(list)
    for (document, block), first in wanted.items():
        at, before = cut[document, block]
        after = full[document, block][1][np.searchsorted(full[document, block][0], at)]
        back = longrange.last_seen(work.subject.texts.documents[document], work.subject.documents[document])
        far = longrange.far(back, at, first, length, base)
        key = longrange.key_tokens(before, after, asked.key_gain, asked.key_loss)
        for split, part, chosen in (
            ("repeat", "far", far),
            ("repeat", "other", ~far),
            ("key", "key", key),
            ("key", "other", ~key),
        ):
            sums[split, part].append((int(chosen.sum()), float(before[chosen].sum()), float(after[chosen].sum())))
    rows = [_split(split, part, own, str(work.subject.seed)) for (split, part), own in sums.items()]
    every = sum(row["n_scored"] for row in rows if row["split"] == "key")
    return [{**row, "share_of_targets": row["n_scored"] / every} for row in rows]


def _split(split: str, part: str, sums: list[tuple[int, float, float]], seed: str) -> dict[str, Any]:
    n, before, after = (np.array(column, np.float64) for column in zip(*sums, strict=True))
    row: dict[str, Any] = {"split": split, "part": part, "n_scored": int(n.sum()), "status": "ok", "detail": ""}
    if not n.sum():
        return {**row, "status": "too_short", "detail": "no target of this kind"}
    found = stats.interval(before - after, n, seed)
    full = stats.ratio(after, n)
    return {
        **row,
        "cut_nll": stats.ratio(before, n),
        "full_nll": full,
        "nats": stats.ratio(before - after, n),
        "nats_ci_low": found.low,
        "nats_ci_high": found.high,
        "longppl": stats.ppl(full) if (split, part) == ("key", "key") else None,
        "detail": found.why_none,
    }
