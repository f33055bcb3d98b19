"""The sums behind a summary: blocks.csv by document and block, trials.csv by trial.

ppl, context    nll_sum over n_scored of each block
attribution     base - full, base - cut, cut - full; at window ends cut - swap, swap - full
needle          exact, choice, contains, answer_nll of each trial; evidence gain = absent - evidence
"""

import math
from collections import defaultdict
from collections.abc import Sequence

from lengthbench.check.cell import Sums
from lengthbench.check.tables import ROLE, Row

BYTE = math.log(2)
"""Bits per byte: nats are divided by this times the bytes."""
RATES = ("exact", "choice", "contains", "answer_nll")
SWAPPED = ("length_effect", "content_use")
"""Components with a swapped side."""
TRUTH = {"true": 1.0, "false": 0.0}

Block = dict[tuple[str, ...], Row]


class Blocks:
    """blocks.csv, by cell and then by document and block."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.cells: dict[tuple[str, ...], Block] = defaultdict(dict)
        for row in rows:
            key = (*(row[c] for c in ROLE), row["protocol"], row["length"], row["stride"], row["condition"])
            self.cells[key][row["doc"], row["block"]] = row

    def unclaimed(self, rows: dict[str, list[Row]]) -> list[str]:
        """Cells whose row is in neither ppl.csv nor context.csv, where it belongs."""
        claimed = {(*_role(r), r["protocol"], r["length"], r["stride"]) for r in rows.get("ppl", ())}
        claimed |= {(*_role(r), "ladder", r["context_max"], r["stride"]) for r in rows.get("context", ())}
        return [" ".join(filter(None, key)) for key in self.cells if key[3] != "window_end" and key[:-1] not in claimed]

    def ppl(self, row: Row) -> dict[str, Sums]:
        """One condition's blocks: where a folder has several of one window, those that the row counts."""
        cells = [self._cell(row, row["protocol"], row["length"], c) for c in ("full", "base", "cut")]
        found = [cell for cell in cells if cell]
        return _losses(next((c for c in found if str(len(c)) == row.get("n_blocks")), found[0])) if found else {}

    def context(self, row: Row) -> dict[str, Sums]:
        return _losses(self._cell(row, "ladder", row["context_max"], row["condition"]))

    def attribution(self, row: Row) -> dict[str, Sums]:
        """Of its component: a - b of two cells, or (a - b) - (c - d) of four."""
        sides = self._sides(row)
        if not all(sides) or any(side.keys() != sides[0].keys() for side in sides):
            return {}
        signs = (1, -1) if len(sides) == 2 else (1, -1, -1, 1)
        clipped = set()
        if row["method"] == "sliding":
            names = ("sliding", row["base_length"]), ("sliding", row["length"])
            clipped = {u for p, n in names for u, b in self._cell(row, p, n, "full").items() if b["n_clipped"] != "0"}
        swap = self._cell(row, "window_end", row["length"], "swap") if row["component"] in SWAPPED else {}
        return {
            "nats": {
                # A block whose far context was replaced by another text is another unit.
                (*unit, *([swap[unit]["detail"]] if swap else [])): (
                    math.fsum(sign * _float(side[unit]["nll_sum"]) for sign, side in zip(signs, sides, strict=True)),
                    _float(block["n_scored"]),
                )
                for unit, block in sides[0].items()
                if unit not in clipped
            }
        }

    def _sides(self, row: Row) -> list[Block]:
        base, length, component = row["base_length"], row["length"], row["component"]
        near = self._cell(row, "nonoverlapping", base, "base", base)
        full = self._cell(row, "nonoverlapping", length, "full", length)
        if component in ("window_end", "length_effect", "content_use"):
            cut, whole, swap = (self._cell(row, "window_end", length, c) for c in ("cut", "full", "swap"))
            return {"window_end": [cut, whole], "length_effect": [cut, swap], "content_use": [swap, whole]}[component]
        if row["method"] == "cut":
            cut = self._cell(row, "cut", length, "cut")
            return {"total": [near, full], "early_token": [near, cut], "beyond_base": [cut, full]}[component]
        slid = [self._cell(row, "sliding", n, "full") for n in (base, length)]
        early = [near, slid[0], full, slid[1]]
        return {"total": [near, full], "early_token": early, "beyond_base": slid}[component]

    def _cell(self, row: Row, protocol: str, length: str, condition: str, stride: str | None = None) -> Block:
        key = (*(row[c] for c in ROLE), protocol, length, stride or row["stride"], condition)
        return self.cells.get(key, {})


class Trials:
    """trials.csv, by cell and arm and then by trial."""

    CELL = ("task", "task_version", "mode", "length", "position")

    def __init__(self, rows: Sequence[Row]) -> None:
        self.cells: dict[tuple[str, ...], dict[str, Row]] = defaultdict(dict)
        for row in rows:
            self.cells[(*(row[c] for c in (*ROLE, *self.CELL)), row["arm"])][row["trial"]] = row

    def unclaimed(self, rows: dict[str, list[Row]]) -> list[str]:
        """Cells whose row needle.csv lacks."""
        claimed = {(*_role(r), *(r[c] for c in self.CELL)) for r in rows.get("needle", ())}
        return [" ".join(filter(None, k)) for k in self.cells if k[-1] == "evidence" and k[:-1] not in claimed]

    def needle(self, row: Row) -> dict[str, Sums]:
        key = tuple(row[c] for c in (*ROLE, *self.CELL))
        evidence = {trial: r for trial, r in self.cells.get((*key, "evidence"), {}).items() if r["status"] == "ok"}
        absent = self.cells.get((*key, "absent"), {})
        found: dict[str, Sums] = {}
        for name in RATES:
            if evidence and all(r.get(name) for r in evidence.values()):
                found[name] = {_trial(r): (_float(r[name]), 1.0) for r in evidence.values()}
        if "answer_nll" in found and all(absent.get(trial, {}).get("answer_nll") for trial in evidence):
            found["evidence_gain"] = {
                _trial(r): (_float(absent[trial]["answer_nll"]) - _float(r["answer_nll"]), 1.0)
                for trial, r in evidence.items()
            }
        return found


def _role(row: Row) -> tuple[str, ...]:
    return tuple(row[column] for column in ROLE)


def _trial(row: Row) -> tuple[str, ...]:
    """The trial and what it asked: another prompt is another trial."""
    return row["trial"], row.get("prompt_sha256", "")


def _losses(blocks: Block) -> dict[str, Sums]:
    if not blocks:
        return {}
    nats = {unit: _float(row["nll_sum"]) for unit, row in blocks.items()}
    return {
        "nll": {unit: (nats[unit], _float(row["n_scored"])) for unit, row in blocks.items()},
        "bits_per_byte": {unit: (nats[unit], BYTE * _float(row["n_bytes"])) for unit, row in blocks.items()},
    }


def _float(text: str) -> float:
    """A cell as a number; what is none is NaN, and so never compares well."""
    if text in TRUTH:
        return TRUTH[text]
    try:
        return float(text)
    except ValueError:
        return math.nan
