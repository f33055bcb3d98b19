"""Speed: tokens a second and peak memory side by side, in rounds that alternate, so that load hits all alike.

    round 1     A 512   A 2048   B 512   B 2048         each the quickest of two or more passes
    round 2     A 512   A 2048   B 512   B 2048         its ratio: tokens a second of B over those of A

    ratio = median of the rounds' ratios                ratio_low, ratio_high = the smallest and the largest

n rounds that do not depend on each other lie on both sides of the true median with probability 1 - 2^(1-n), 97 % for
six: each is above it as often as below. Seconds belong to the machine, ratios much less so.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from lengthbench.errors import UserError
from lengthbench.models import catalog
from lengthbench.request import Events, Outcome, Request
from lengthbench.run import table
from lengthbench.run.folder import RunFolder, open_run
from lengthbench.run.journal import Journal
from lengthbench.timing import PASSES, Bare, Cell, Side, Timing, Whole

PHASES = ("score", "generate", "train")
ROUNDS = 6
TIMES = 8
"""Default lengths of models reach this many times the training length."""
LENGTHS = (256, 512, 1024, 2048)
"""Default lengths of bare schemes."""
SPEED = table.Schema(
    "speed",
    ("model", "scheme", "scheme_params", "length", "phase"),
    (
        "train_length", "tokens_per_second", "ratio", "ratio_low", "ratio_high", "relative_to", "peak_memory_bytes",
        "route", "n_rounds", "n_tokens", "seconds", "dtype", "device", "batch", "status", "detail",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Speed:
    lengths: tuple[int, ...] = ()
    """Empty: the training length x 1, 2, 4, 8."""
    phases: tuple[str, ...] = ()
    """Empty: score; of bare schemes also train."""
    rounds: int = ROUNDS
    relative_to: str | None = None
    """Name of the side that the others are compared with; None: the first."""

    def __post_init__(self) -> None:
        if self.rounds < 1:
            raise UserError(f"--rounds {self.rounds}: it must be 1 or more, for example {ROUNDS}")
        for phase in self.phases:
            if phase not in PHASES:
                raise UserError(f"--phase '{phase}': it is one of {', '.join(PHASES)}")


@dataclass(frozen=True)
class Turn:
    """One side's cell in one round."""

    timing: Timing
    columns: dict[str, Any]
    """The side's own: model, scheme, dtype, route and so on."""


def compare(request: Request, asked: Speed, events: Events | None = None) -> Outcome:
    """Time the request's models, or its bare schemes where it names no model, against each other."""
    events = events or Events()
    sides, lengths = _sides(request, asked, events)
    phases = asked.phases or (("score",) if request.models else ("score", "train"))
    for phase in phases:
        if not any(phase in side.phases for side in sides):
            raise UserError(f"--phase {phase}: a model is trained already; leave --model away and name schemes only")
    first = _first(asked.relative_to, sides)
    cells = [(length, phase) for phase in phases for length in lengths]
    fed = sum(max(1, request.batch_tokens // length) * length for length, _ in cells)
    events.note(
        f"{len(sides)} sides in {asked.rounds} rounds: {PASSES * asked.rounds * len(sides) * fed:,} tokens to "
        "feed, or more where that is quick; absolute speeds hold for this machine only, ratios are what to compare"
    )
    if request.dry_run:
        return Outcome({SPEED.name: []}, None, "")
    folder = None
    if request.keep:
        settings = asdict(request) | {"speed": asdict(asked)}
        for place in ("out", "resume", "dry_run", "keep"):
            del settings[place]
        folder = open_run(request.out, "speed", [side.name for side in sides], settings, request.resume)
    try:
        rounds = _rounds(sides, cells, request.batch_tokens, asked.rounds, folder, events)
    except UserError:
        if folder:
            folder.refuse()
        raise
    except KeyboardInterrupt:
        if folder:
            folder.finish("interrupted")
        raise
    by_side = {side.name: _rows(side, cells, rounds, first, request.batch_tokens) for side in sides}
    rows = [row for own in by_side.values() for row in own]
    sentence = _sentence(by_side, phases, first)
    if folder:
        table.write(folder.path, SPEED, rows)
        counts = {status: sum(r["status"] == status for r in rows) for status in sorted({r["status"] for r in rows})}
        folder.finish("complete", lengths=list(lengths), rows_per_status=counts, sentence=sentence)
        Journal(folder.path).remove()
    return Outcome({SPEED.name: rows}, folder.path if folder else None, sentence)


def _sides(request: Request, asked: Speed, events: Events) -> tuple[list[Side], tuple[int, ...]]:
    """What is timed, by names that tell them apart, and at which lengths."""
    if not request.models:
        bare: list[Side] = [Bare(scheme, request.options) for scheme in dict.fromkeys(request.schemes)]
        return bare, asked.lengths or LENGTHS
    cards = catalog.describe(request.models, request.schemes, request.options)
    names = [card.name for card in cards]
    sides: list[Side] = []
    for card in cards:
        for warning in card.warnings:
            events.note(warning)
        own = f"{card.scheme} {table.cell(card.scheme_params)}".strip()
        sides.append(Whole(card, card.name if names.count(card.name) == 1 else f"{card.name} [{own}]"))
    known = sorted({card.train_length for card in cards if card.train_length})
    if not asked.lengths and not known:
        raise UserError(f"{cards[0].name}: its training length is unknown; say --lengths, for example 512..8192")
    return sides, asked.lengths or tuple(sorted({n << k for n in known for k in range(TIMES.bit_length())}))


def _first(name: str | None, sides: Sequence[Side]) -> str:
    names = [side.name for side in sides]
    if name is not None and name not in names:
        raise UserError(f"--relative-to {name}: it is none of those that are timed: {', '.join(names)}")
    return name or names[0]


Round = dict[tuple[str, Cell], Turn]


def _rounds(
    sides: Sequence[Side], cells: Sequence[Cell], batch_tokens: int, n: int, folder: RunFolder | None, events: Events
) -> list[Round]:
    """All rounds; those that an earlier part of the run has finished come from its journal."""
    journal = Journal(folder.path) if folder else None
    done = journal.finished(0, {"model": " + ".join(side.name for side in sides)}) if journal else {}
    rounds: list[Round] = []
    lost: set[tuple[str, Cell]] = set()
    for number in range(n):
        if number in done:
            found = _finished(done[number])
        else:
            events.detail(f"round {number + 1} of {n}")
            found: Round = {}
            for side in sides:
                own = [cell for cell in cells if cell[1] in side.phases and (side.name, cell) not in lost]
                turns = side.turn(own, batch_tokens) if own else ()
                for cell, (timing, columns) in zip(own, turns, strict=True):
                    before = rounds[0][side.name, cell].columns if rounds else columns
                    if columns != before:
                        changed = ", ".join(name for name in columns if columns[name] != before.get(name))
                        raise UserError(
                            f"--resume: {changed} of {side.name} changed since; old rounds are never reused, give "
                            "another --out"
                        )
                    found[side.name, cell] = Turn(timing, columns)
            if journal:
                results = [[side, *cell, asdict(t.timing), t.columns] for (side, cell), t in found.items()]
                journal.append({"model": 0, "batch": number, "results": results})
        lost |= {key for key, turn in found.items() if turn.timing.status != "ok"}
        rounds.append(found)
    return rounds


def _finished(results: Sequence[Any]) -> Round:
    """A round as it stands in the journal."""
    return {(name, (length, phase)): Turn(Timing(**t), columns) for name, length, phase, t, columns in results}


def _rows(
    side: Side, cells: Sequence[Cell], rounds: Sequence[Round], first: str, batch_tokens: int
) -> list[dict[str, Any]]:
    """A row for each cell of a phase that the side has."""
    shared = {"batch": batch_tokens, "relative_to": first}
    return [{**shared, **_row(side.name, cell, rounds, first)} for cell in cells if cell[1] in side.phases]


def _row(name: str, cell: Cell, rounds: Sequence[Round], first: str) -> dict[str, Any]:
    turns = [found[name, cell] for found in rounds if (name, cell) in found]
    row = {k: v for k, v in turns[0].columns.items() if k != "weights"} | {"length": cell[0], "phase": cell[1]}
    failed = next((turn.timing for turn in turns if turn.timing.status != "ok"), None)
    if failed:
        return {**row, "status": failed.status, "detail": failed.detail}
    row |= {
        "tokens_per_second": statistics.median(_speed(turn) for turn in turns),
        "peak_memory_bytes": max(turn.timing.peak_memory_bytes for turn in turns),
        "n_rounds": len(turns),
        "n_tokens": sum(turn.timing.n_tokens for turn in turns),
        "seconds": sum(turn.timing.seconds for turn in turns),
        "status": "ok",
    }
    others = [found.get((first, cell)) for found in rounds]
    pairs = [(a, b) for a, b in zip(turns, others, strict=True) if b is not None and b.timing.status == "ok"]
    if len(pairs) < len(turns):
        return {**row, "detail": f"{first} has no number here to compare with"}
    ratios = [_speed(own) / _speed(other) for own, other in pairs]
    row["ratio"] = statistics.median(ratios)
    if len(ratios) == 1:
        return {**row, "detail": "one round: no range of the ratio"}
    return {**row, "ratio_low": min(ratios), "ratio_high": max(ratios), "detail": ""}


def _speed(turn: Turn) -> float:
    return turn.timing.n_tokens / turn.timing.seconds


def _sentence(by_side: dict[str, list[dict[str, Any]]], phases: Sequence[str], first: str) -> str:
    """What each side is to the first, at the longest length that both have."""
    lines = []
    for phase in phases:
        said = []
        for name, rows in by_side.items():
            own = [row for row in rows if row["phase"] == phase and row.get("ratio") is not None]
            if own and name != first:
                row = max(own, key=lambda row: row["length"])
                low, high = row.get("ratio_low"), row.get("ratio_high")
                between = "" if low is None or high is None else f" [{low:.2f}, {high:.2f}]"
                said.append(f"{name} x {row['ratio']:.2f}{between} at {row['length']}")
        if said:
            lines.append(f"{phase}, tokens a second relative to {first}: {', '.join(said)}")
    return "\n".join(lines)
