"""Block sums -> the rows of ppl.csv, blocks.csv and positions.csv.

`ci_low, ci_high` are of nll. A cell has numbers only if all its blocks are ok.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

from lengthbench import stats
from lengthbench.probes.blocks import Selection
from lengthbench.probes.losses import BlockSum, Cell, bucket, per_unit, units
from lengthbench.run.table import Schema

MODEL_KEY = ("model", "scheme", "scheme_params")
MODEL_VALUES = ("train_length", "dtype", "device", "route", "batch", "bos", "bos_token", "tokenizer", "data")
LOSS = ("n_scored", "n_bytes", "nll_sum", "nll", "ppl", "bits_per_byte", "ci_low", "ci_high")
COST = ("fed", "seconds", "tokens_per_second", "peak_memory_bytes")
CELL_KEY = (*MODEL_KEY, "protocol", "length", "stride")

PPL = Schema(
    "ppl",
    CELL_KEY,
    (
        *MODEL_VALUES[:1],
        *LOSS,
        "n_windows",
        "n_clipped",
        "n_blocks",
        *COST,
        *MODEL_VALUES[1:],
        "status",
        "detail",
    ),
)
BLOCKS = Schema(
    "blocks",
    (*CELL_KEY, "condition", "doc", "block"),
    ("base_length", "n_scored", "n_bytes", "nll_sum", "n_clipped", "fed", "seconds", "status", "detail"),
)
POSITIONS = Schema(
    "positions",
    (*CELL_KEY, "context_from"),
    ("context_to", "train_length", "n_scored", "nll_sum", "nll", "ci_low", "ci_high", "status", "detail"),
)
SCHEMAS = (PPL, BLOCKS, POSITIONS)


def rows(
    model: dict[str, Any],
    cells: Sequence[Cell],
    sums: Sequence[BlockSum],
    expected: dict[Cell, int],
    missing: dict[Cell, tuple[str, str]],
    names: Sequence[str],
    seed: int,
    base_length: int | None = None,
) -> dict[str, list[dict]]:
    """Rows of the three tables for one model.

    model: its MODEL_KEY and MODEL_VALUES columns; expected: blocks each cell should have (a cell with fewer was
    interrupted and gets no row); missing: status and detail of cells that could not be run; names: of documents.
    """
    tables: dict[str, list[dict]] = {"ppl": [], "blocks": [], "positions": []}
    by_cell: dict[Cell, list[BlockSum]] = defaultdict(list)
    for block in sums:
        by_cell[block.cell].append(block)
    identity = {k: model[k] for k in MODEL_KEY}
    for cell in cells:
        key = {**identity, "protocol": cell.protocol, "length": cell.length, "stride": cell.stride}
        if cell in missing:
            status, detail = missing[cell]
            tables["ppl"].append({**model, **key, "status": status, "detail": detail})
            continue
        blocks = sorted(by_cell[cell], key=lambda b: (b.document, b.block))
        if not blocks or len(blocks) < expected[cell]:
            continue
        tables["ppl"].append({**model, **key, **_summary(blocks, seed)})
        tables["blocks"] += [{**key, "base_length": base_length, **block_row(b, names)} for b in blocks]
        if all(b.status == "ok" for b in blocks):
            lengths = {"train_length": model["train_length"]}
            tables["positions"] += [{**key, **lengths, **row} for row in _positions(blocks, seed)]
    return tables


def _summary(blocks: list[BlockSum], seed: int) -> dict[str, Any]:
    seconds, fed = sum(b.seconds for b in blocks), sum(b.fed for b in blocks)
    row: dict[str, Any] = {
        "n_windows": sum(b.n_windows for b in blocks),
        "n_clipped": sum(b.n_clipped for b in blocks),
        "n_blocks": len(blocks),
        "fed": round(fed),
        "seconds": seconds,
        "tokens_per_second": fed / seconds if seconds else None,
        "peak_memory_bytes": max(b.peak_memory_bytes for b in blocks),
    }
    failed = [b for b in blocks if b.status != "ok"]
    if failed:
        counts = Counter(b.status for b in failed)
        status, n = counts.most_common(1)[0]
        detail = next(b.detail for b in failed if b.status == status)
        return {**row, "status": status, "detail": f"{n} of {len(blocks)} blocks: {detail}"}
    found = loss([(b.nll_sum or 0.0, b.n_scored) for b in blocks], blocks, seed)
    n_bytes = sum(b.n_bytes for b in blocks)
    details = [found.pop("why_none")]
    ppl = stats.ppl(found["nll"])
    if math.isinf(ppl):
        details.append("ppl overflows; nll is exact")
    return {
        **row,
        **found,
        "n_bytes": n_bytes,
        "ppl": ppl,
        "bits_per_byte": stats.bits_per_byte(found["nll_sum"], n_bytes) if n_bytes else None,
        "status": "ok",
        "detail": "; ".join(filter(None, details)),
    }


def loss(pairs: list[tuple[float, int]], blocks: Sequence[BlockSum], seed: int) -> dict[str, Any]:
    """nll_sum, n_scored, nll and its interval from (nll_sum, n_scored) of each block."""
    groups = units(blocks)
    nll_sum = math.fsum(a for a, _ in pairs)
    n_scored = sum(n for _, n in pairs)
    found = stats.interval(per_unit(groups, (a for a, _ in pairs)), per_unit(groups, (n for _, n in pairs)), str(seed))
    return {
        "n_scored": n_scored,
        "nll_sum": nll_sum,
        "nll": stats.ratio([nll_sum], [n_scored]),
        "ci_low": found.low,
        "ci_high": found.high,
        "why_none": found.why_none,
    }


def block_row(block: BlockSum, names: Sequence[str]) -> dict[str, Any]:
    return {
        "condition": block.cell.condition,
        "doc": names[block.document] if block.cell.protocol != "hf" else "joined",
        "block": block.block,
        "n_scored": block.n_scored,
        "n_bytes": block.n_bytes,
        "nll_sum": block.nll_sum,
        "n_clipped": block.n_clipped,
        "fed": round(block.fed),
        "seconds": block.seconds,
        "status": block.status,
        "detail": block.detail,
    }


def _positions(blocks: list[BlockSum], seed: int) -> list[dict[str, Any]]:
    out = []
    for low in sorted({low for b in blocks for low in b.buckets}):
        pairs = [(b.buckets[low][1], b.buckets[low][0]) for b in blocks if low in b.buckets]
        found = loss(pairs, [b for b in blocks if low in b.buckets], seed)
        detail = found.pop("why_none")
        out.append({"context_from": low, "context_to": bucket(low)[1], **found, "status": "ok", "detail": detail})
    return out


def notes(data: str, selection: Selection, longest: int) -> list[str]:
    """What of the text is scored, and what not and why, a line each. `longest`: tokens of the longest document."""
    lines = [
        f"length {length} is left out: the longest document has {longest} tokens, needs {length + 1}"
        for length in selection.too_short
    ]
    if not selection.lengths:
        return lines
    parts = [f"{data}: {_blocks(len(selection.blocks))} of {selection.size:,} targets"]
    if len(selection.blocks) < selection.n_available:
        parts[0] += f" (of {selection.n_available})"
    if selection.n_dropped:
        parts.append(f"{selection.n_dropped:,} targets left over at the ends of documents")
    if selection.n_left_out:
        parts.append(f"{selection.n_left_out} documents too short for a block left out")
    lines.append("; ".join(parts))
    if len(selection.blocks) < stats.TOO_FEW:
        lines.append(f"only {_blocks(len(selection.blocks))}: no intervals; give more text or shorter --lengths")
    return lines


def _blocks(n: int) -> str:
    return "1 block" if n == 1 else f"{n} blocks"
