"""Which cell of the one side belongs to which of the other, and whether the two measured the same thing.

model      by --map OLD=NEW, by an equal name, or because each side has only one
scheme     by an equal name and parameters, or because that model has only one on each side
place      length, component, rung, task and position: equal
settings   protocol, stride, base length, text, tokenizer, start token, task version: equal, or not comparable
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lengthbench.check.cell import Cell, Role
from lengthbench.check.side import Side
from lengthbench.check.tables import TABLES
from lengthbench.errors import UserError

WORDS = {"bos_token": "start token", "data": "text", "task_version": "task version", "base_length": "base length"}
"""How a message names a column."""


@dataclass(frozen=True)
class Pair:
    baseline: Cell
    current: Cell | None
    differing: tuple[str, ...] = ()
    """What makes the two not comparable, in words."""
    why_missing: str = ""


def parse_map(words: Sequence[str]) -> dict[str, str]:
    """`OLD=NEW` each: the model OLD of the baseline is compared with NEW."""
    found = {}
    for word in words:
        # The last sign: a name such as oracle:constant:nats=1 has its own, and is then given whole in quotes.
        old, sign, new = word.partition("=") if word.count("=") == 1 else word.partition("==")
        if not (old and sign and new):
            raise UserError(f"--map {word}: it is OLD=NEW, two names of models (OLD==NEW if a name has a = of its own)")
        found[old] = new
    return found


def models(baseline: Side, current: Side, renamed: Mapping[str, str]) -> dict[Role, Role]:
    """Model of the baseline -> the one it is compared with. Raises UserError if a name in `renamed` is nowhere."""
    olds, news = ({role[0] for role in side.roles} for side in (baseline, current))
    for known, name, side in [(olds, o, baseline) for o in renamed] + [(news, n, current) for n in renamed.values()]:
        if name not in known:
            raise UserError(f"--map: {side.path} has no model {name}; it has: {', '.join(sorted(known))}")
    names = {old: renamed.get(old, old) for old in olds if old in renamed or old in news}
    if not names and len(olds) == len(news) == 1:
        names = {next(iter(olds)): next(iter(news))}
    found = {}
    for role in baseline.roles:
        own = [other for other in current.roles if other[0] == names.get(role[0])]
        alike = [other for other in own if other[1:] == role[1:]]
        if alike:
            found[role] = alike[0]
        elif len(own) == 1 and sum(other[0] == role[0] for other in baseline.roles) == 1:
            found[role] = own[0]
    return found


def pairs(baseline: Side, current: Side, renamed: Mapping[str, str]) -> list[Pair]:
    """Every cell of the baseline with its partner; None where there is none."""
    roles = models(baseline, current, renamed)
    there: dict[tuple, list[Cell]] = defaultdict(list)
    for cell in current.cells:
        there[cell.role, cell.place].append(cell)
    taken = {(roles.get(cell.role), cell.place, _how(cell)) for cell in baseline.cells}
    found = []
    for cell in baseline.cells:
        role = roles.get(cell.role)
        candidates = there.get((role, cell.place), []) if role else []
        exact = [c for c in candidates if _how(c) == _how(cell)]
        free = [c for c in candidates if (c.role, c.place, _how(c)) not in taken]
        if exact or free:
            partner = (exact or free)[0]
            found.append(Pair(cell, partner, tuple(_differing(cell, partner, baseline, current))))
        elif role:
            found.append(Pair(cell, None, why_missing=f"{current.path} has no such row"))
        else:
            has = ", ".join(sorted({other[0] for other in current.roles})) or "no model"
            why = f"{current.path} does not have this model; it has {has}: --map OLD=NEW pairs two names"
            found.append(Pair(cell, None, why_missing=why))
    return found


def _how(cell: Cell) -> tuple[str, ...]:
    """The settings that tell rows of one file apart."""
    return tuple(cell.row[column] for column in TABLES[cell.table].settings)


def _differing(one: Cell, other: Cell, baseline: Side, current: Side) -> list[str]:
    texts = baseline.data_sha256, current.data_sha256
    found = []
    for column, value in one.settings.items():
        now = other.settings.get(column, value)
        if column == "data" and all(texts):
            if texts[0] != texts[1]:
                found.append(f"text {value} ({texts[0][:8]} -> {texts[1][:8]})")
        elif now != value:
            found.append(f"{WORDS.get(column, column)} {value or 'none'} -> {now or 'none'}")
    if found or one.status != "ok" or other.status != "ok":
        return found
    for column in TABLES[one.table].counts:
        counts = one.row.get(column), other.row.get(column)
        # An empty one is no other text, but a number that is missing.
        if all(counts) and one.number(column) != other.number(column):
            found.append(f"{column} {counts[0]} -> {counts[1]}")
    return found or _other_units(one, other)


def _other_units(one: Cell, other: Cell) -> list[str]:
    """Blocks or trials that only one side has, or that have other targets."""
    for name in one.sums.keys() & other.sums.keys():
        old, new = one.sums[name], other.sums[name]
        stray = sorted(old.keys() ^ new.keys()) or sorted(u for u in old if old[u][1] != new[u][1])
        if stray:
            what = "trials" if one.table == "needle" else "blocks"
            return [f"{what} ({len(stray)} are not the same, such as {' '.join(stray[0]).strip()})"]
    return []
