"""Attribution's rows: attribution.csv, tokens.csv and splits.csv, beside ppl.csv and blocks.csv of the same windows.

`nats` = nll_from - nll_to, positive where the second condition is better; `share` is of the total, and empty where
the total is within its interval of 0. The window-end components are measured on the last `stride` targets of each
window only, so they are never to be added to the others.
"""

from collections.abc import Collection, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lengthbench import stats
from lengthbench.probes import longrange_tables, losses, perplexity_tables, targets
from lengthbench.probes.attribution_verdict import Change, Verdict
from lengthbench.probes.longrange_tables import SPLITS, TOKENS
from lengthbench.probes.losses import BlockSum, Cell, per_unit, units
from lengthbench.probes.perplexity_tables import BLOCKS, MODEL_KEY, MODEL_VALUES, POSITIONS, PPL
from lengthbench.run.table import Schema

if TYPE_CHECKING:
    from lengthbench.probes.attribution import Work

ATTRIBUTION = Schema(
    "attribution",
    (*MODEL_KEY, "length", "method", "base_length", "stride", "component"),
    (
        "train_length",
        "nll_from",
        "nll_to",
        "nats",
        "nats_ci_low",
        "nats_ci_high",
        "share",
        "n_scored",
        "n_blocks",
        "s_bound",
        "s_bound_ci_low",
        "s_bound_ci_high",
        "reading",
        "verdict",
        *MODEL_VALUES[1:],
        "status",
        "detail",
    ),
)
SCHEMAS = (ATTRIBUTION, TOKENS, SPLITS, PPL, BLOCKS, POSITIONS)
COMPONENTS = ("total", "early_token", "beyond_base")


class Tables:
    """Rows of one model from whatever of its trials is finished."""

    def __init__(self, work: "Work", results: dict[int, dict[str, Any]]) -> None:
        self.work, self.results, self.seed = work, results, str(work.subject.seed)
        self.base = work.base
        # Each is asked for by rows, verdicts and bounds alike.
        self._targets = cache(lambda cell: targets.losses_of(work.trials, results, cell))
        self._bound = cache(self._bound_at)
        self._components = cache(self._components_at)

    def rows(self, identity: dict[str, Any]) -> dict[str, list[dict]]:
        tables = self._losses(identity)
        tables |= {"attribution": self._attribution(identity), "tokens": [], "splits": []}
        key = {name: identity[name] for name in MODEL_KEY} | {"base_length": self.base}
        for length in self.work.lengths if "cut" in self.work.asked.methods else ():
            if length not in self.work.missing:
                tables["tokens"] += [{**key, "length": length, **row} for row in self._tokens(length)]
                tables["splits"] += [{**key, "length": length, **row} for row in self._splits(length)]
        return tables

    def verdicts(self) -> list[Verdict]:
        """One for each length that has numbers, by method and ascending."""
        asked, lengths = self.work.asked, self.work.lengths
        return [v for method in asked.methods for n in lengths if (v := self._verdict(method, n))]

    @cached_property
    def sums(self) -> list[BlockSum]:
        """Over every block of every cell; the sampled `cut` ones are expanded to all targets of their block."""
        found = losses.block_sums(self.work.trials, self.results)
        if self.work.asked.sample == 1:
            return found
        return [self._expanded(b, found) if b.cell.protocol == "cut" else b for b in found]

    def _expanded(self, block: BlockSum, sums: Sequence[BlockSum]) -> BlockSum:
        """full - G, G being what the sampled groups give for all groups: unbiased, and noisier by so much."""
        full_cell = Cell("nonoverlapping", block.cell.length, block.cell.length, "full")
        full = next(
            (b for b in sums if (b.cell, b.document, b.block) == (full_cell, block.document, block.block)), None
        )
        if full is None or full.nll_sum is None or block.nll_sum is None:
            return block
        key = (block.document, block.block)
        (at, cut), (every, nll) = self._targets(block.cell)[key], self._targets(full_cell)[key]
        gain = cut - nll[np.searchsorted(every, at)]
        near = (at - every[0]) % block.cell.length < self.base
        times = np.count_nonzero((every - every[0]) % block.cell.length >= self.base) / np.count_nonzero(~near)
        total = full.nll_sum + float(gain[near].sum() + times * gain[~near].sum())
        detail = f"sampled: {np.count_nonzero(~near)} targets beyond {self.base} stand for all"
        return BlockSum(
            block.cell, block.document, block.block, "ok", detail, block.n_windows, 0, full.n_scored, full.n_bytes,
            total, block.buckets, block.seconds, block.fed, block.peak_memory_bytes,
        )  # fmt: skip

    def _losses(self, identity: dict[str, Any]) -> dict[str, list[dict]]:
        """ppl.csv, blocks.csv and positions.csv of the very windows; those at a window's end are blocks only."""
        cells = list(dict.fromkeys(t.key.cell for t in self.work.trials))
        missing: dict[Cell, tuple[str, str]] = {}
        for length, why in self.work.missing.items():
            cell = Cell("nonoverlapping", length, length)
            missing[cell] = why
            cells.append(cell)
        names = [d.name for d in self.work.subject.documents]
        seed = self.work.subject.seed
        tables = perplexity_tables.rows(identity, cells, self.sums, self._expected, missing, names, seed, self.base)
        for name in ("ppl", "positions"):
            tables[name] = [row for row in tables[name] if row["protocol"] != "window_end"]
        return tables

    def _attribution(self, identity: dict[str, Any]) -> list[dict]:
        asked, rows = self.work.asked, []
        for method in asked.methods:
            stride = asked.stride_of(method, self.base)
            for length in self.work.lengths:
                key = {**identity, "length": length, "method": method, "base_length": self.base, "stride": stride}
                if length in self.work.missing:
                    status, detail = self.work.missing[length]
                    rows += [{**key, "component": c, "status": status, "detail": detail} for c in COMPONENTS]
                    continue
                own = self._components(method, length)
                verdict = self._verdict(method, length)
                said = {"reading": verdict.reading, "verdict": verdict.text} if verdict else {}
                rows += [{**key, **said, **row} for row in own]
        return rows

    def _components_at(self, method: str, length: int) -> list[dict]:
        """Rows without the key that all share; none while some of their windows are missing."""
        sides = self._sides(method, length)
        if not all(self._whole(cell) for cells in sides.values() for cell in cells):
            return []
        clipped = {
            (b.document, b.block) for c in sides["beyond_base"] for b in losses.of_cell(self.sums, c) if b.n_clipped
        }
        rows = [self._row(name, cells, clipped) for name, cells in sides.items()]
        low, high = rows[0].get("nats_ci_low"), rows[0].get("nats_ci_high")
        if low is not None and high is not None and not low <= 0 <= high:
            rows = [{**row, "share": row["nats"] / rows[0]["nats"]} for row in rows]
        if method == "cut":
            if rows[2]["status"] == "ok":
                rows[2] |= self._bound(length)[0]
            rows += self._end(length)
        return rows

    def _sides(self, method: str, length: int) -> dict[str, tuple[Cell, ...]]:
        """Component -> its cells, a - b of two and (a - b) - (c - d) of four."""
        base = Cell("nonoverlapping", self.base, self.base, "base")
        full = Cell("nonoverlapping", length, length, "full")
        stride = self.work.asked.stride_of(method, self.base)
        if method == "cut":
            cut = Cell("cut", length, stride, "cut")
            return {"total": (base, full), "early_token": (base, cut), "beyond_base": (cut, full)}
        near, far = (Cell("sliding", n, stride, "full") for n in (self.base, length))
        return {"total": (base, full), "early_token": (base, near, full, far), "beyond_base": (near, far)}

    def _whole(self, cell: Cell) -> bool:
        """Whether every block of the cell is finished."""
        return len(losses.of_cell(self.sums, cell)) == self._expected.get(cell, -1)

    @cached_property
    def _expected(self) -> dict[Cell, int]:
        return losses.n_blocks(self.work.trials)

    def _row(self, component: str, cells: Sequence[Cell], left_out: Collection[tuple[int, int]] = ()) -> dict[str, Any]:
        """One component with its interval, over all blocks but those `left_out`."""
        sides = [losses.of_cell(self.sums, cell) for cell in cells]
        failed = next((b for side in sides for b in side if b.status != "ok"), None)
        if failed:
            return {"component": component, "status": failed.status, "detail": failed.detail}
        sides = [[b for b in side if (b.document, b.block) not in left_out] for side in sides]
        if not sides[0]:
            detail = "every block begins where the document does, so that some of its targets have too little context"
            return {"component": component, "status": "clipped", "detail": detail}
        n, groups = [b.n_scored for b in sides[0]], units(sides[0])
        sums = [np.array([b.nll_sum for b in side], np.float64) for side in sides]
        before, after = (sums[0], sums[1]) if len(sums) == 2 else (sums[0] - sums[1], sums[2] - sums[3])
        found = stats.interval(per_unit(groups, before - after), per_unit(groups, n), self.seed)
        details = [f"{len(left_out)} clipped blocks left out" if left_out else "", found.why_none]
        return {
            "component": component,
            "nll_from": stats.ratio(before, n),
            "nll_to": stats.ratio(after, n),
            "nats": stats.ratio(before - after, n),
            "nats_ci_low": found.low,
            "nats_ci_high": found.high,
            "n_scored": sum(n),
            "n_blocks": len(n),
            "status": "ok",
            "detail": "; ".join(filter(None, details)),
        }

    def _end(self, length: int) -> list[dict]:
        """The three-way split at the end of each window, on its own targets and with its own stride."""
        stride = self.work.asked.end_of(self.base, length)
        cut, full, swap = (Cell("window_end", length, stride, c) for c in ("cut", "full", "swap"))
        if not self.work.asked.swap or not self._whole(cut):
            return []
        pairs = {"window_end": (cut, full), "length_effect": (cut, swap), "content_use": (swap, full)}
        rows = [self._row("window_end", pairs.pop("window_end"))]
        if not losses.of_cell(self.sums, swap):
            why = f"no other text of {length} tokens to put in the place of the far context"
            rows += [{"component": name, "status": "too_short", "detail": why} for name in pairs]
        elif self._whole(swap):
            rows += [self._row(name, cells) for name, cells in pairs.items()]
        return [{**row, "stride": stride} for row in rows]

    def _bound_at(self, length: int) -> tuple[dict[str, Any], bool]:
        """The S-bound's columns, and whether the gain beyond the base exceeds it by its interval."""
        stride = self.work.asked.stride_of("cut", self.base)
        cut, full = Cell("cut", length, stride, "cut"), Cell("nonoverlapping", length, length, "full")
        sides = [losses.of_cell(self.sums, cell) for cell in (cut, full)]
        falls = self._falls(cut, full)
        if any((b.document, b.block) not in falls for b in sides[0]):
            return {}, False
        groups = units(sides[0])
        own = [falls[b.document, b.block] for b in sides[0]]
        n = np.array([b.n_scored for b in sides[0]], np.float64)
        fall, count = np.array([f for f, _ in own]), np.array([c for _, c in own], np.float64)
        found = stats.interval(per_unit(groups, fall), per_unit(groups, count), self.seed)
        columns = {
            "s_bound": stats.ratio(fall, count),
            "s_bound_ci_low": found.low,
            "s_bound_ci_high": found.high,
        }
        gain = np.array([(a.nll_sum or 0.0) - (b.nll_sum or 0.0) for a, b in zip(*sides, strict=True)])
        # Blocks are equally large, so a mean a group becomes a mean a target by n / count of the block.
        excess = stats.interval(per_unit(groups, gain - fall * n / count), per_unit(groups, n), self.seed)
        return columns, excess.low is not None and excess.low > 0

    def _falls(self, cut: Cell, full: Cell) -> dict[tuple[int, int], tuple[float, int]]:
        """(document, block) -> how much cut - full falls within its groups, and how many there are."""
        few, all_ = self._targets(cut), self._targets(full)
        found = {}
        for key, (at, nll) in few.items():
            every, other = all_[key]
            offset = (at - every[0]) % cut.length - self.base
            far = offset >= 0
            gain = nll - other[np.searchsorted(every, at)]
            fall, groups = targets.fall(at[far], gain[far], offset[far], cut.stride)
            if groups:
                found[key] = fall, groups
        return found

    def _verdict(self, method: str, length: int) -> Verdict | None:
        if length in self.work.missing:
            return None
        rows = {row["component"]: row for row in self._components(method, length)}
        if any(name not in rows or rows[name]["status"] != "ok" for name in COMPONENTS):
            return None
        content = rows.get("content_use", {"status": "none"})
        total, early, beyond = (_change(rows[name]) for name in COMPONENTS)
        exceeds = beyond.up if method == "sliding" else self._bound(length)[1]
        name = self.work.subject.card.name
        own = _change(content) if content["status"] == "ok" else None
        return Verdict(name, method, self.base, length, total, early, beyond, own, exceeds)

    def _tokens(self, length: int) -> list[dict]:
        return longrange_tables.tokens(self.work, self._targets, length)

    def _splits(self, length: int) -> list[dict]:
        return longrange_tables.splits(self.work, self._targets, length)


def _change(row: dict[str, Any]) -> Change:
    return Change(row["nll_from"], row["nll_to"], row["nats"], row["nats_ci_low"], row["nats_ci_high"])
