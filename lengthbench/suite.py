"""Suites: a TOML file that names models, a text and several probes; `suites/family.toml` is the suite `family`.

    models = ["reference:all"]          what --model takes; so do schemes, data, column, split, join, bos, dtype,
    batch_tokens = 2048                 device, train_length, batch_tokens and seed what their options take

    [[probe]]
    kind = "ppl"                        ppl | attribute | context | needle | speed; the other keys are the command's
    lengths = "256..4096"               options

Names of files in it are read as on the command line: from the folder where the command runs. What lets foreign code
run is not for a file to say: --allow-pickle and --allow-remote-code are options only.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lengthbench import lengths, positions
from lengthbench.errors import UserError
from lengthbench.probes.attribution import Attribution
from lengthbench.probes.context import ContextLadder
from lengthbench.probes.needle import Needle
from lengthbench.probes.perplexity import Perplexity
from lengthbench.probes.suite import Part, Suite

FOLDER = Path(__file__).parent / "suites"
TEXT, WHOLE, NUMBER, SWITCH = (str,), (int,), (int, float), (bool,)
LENGTHS, WORDS = (str, int), (str, list)
SAID = {
    TEXT: "text", WHOLE: "a whole number", NUMBER: "a number", SWITCH: "true or false",
    LENGTHS: "text or a whole number", WORDS: "text, or a list of texts", (list,): "a list",
}  # fmt: skip
KEYS: dict[str, tuple[type, ...]] = {
    "description": TEXT, "models": WORDS, "schemes": WORDS, "data": TEXT, "column": TEXT, "split": TEXT, "join": TEXT,
    "bos": TEXT, "dtype": TEXT, "device": TEXT, "train_length": WHOLE, "batch_tokens": WHOLE, "seed": WHOLE,
    "probe": (list,),
}  # fmt: skip
PROBES: dict[str, dict[str, tuple[type, ...]]] = {
    "ppl": {"lengths": LENGTHS, "protocol": WORDS, "stride": WHOLE, "max_tokens": WHOLE},
    "attribute": {
        "lengths": LENGTHS, "base": WHOLE, "method": WORDS, "stride": WHOLE, "end_stride": WHOLE, "sample": WHOLE,
        "swap": SWITCH, "top": WHOLE, "key_gain": NUMBER, "key_loss": NUMBER, "max_tokens": WHOLE,
    },
    "context": {
        "length": LENGTHS, "base": WHOLE, "stride": WHOLE, "groups": WHOLE, "epsilon": NUMBER, "swap": SWITCH,
        "max_tokens": WHOLE,
    },
    "needle": {
        "positions": LENGTHS, "lengths": LENGTHS, "task": WORDS, "trials": WHOLE, "arms": WORDS, "choice": SWITCH,
        "jsonl": TEXT, "mode": TEXT, "template": TEXT, "answer_prefix": SWITCH, "budget": WHOLE,
    },
}  # fmt: skip
"""Kind -> its keys; each is the option of that name."""
SPEED: dict[str, tuple[type, ...]] = {"lengths": LENGTHS, "phase": WORDS, "rounds": WHOLE, "relative_to": TEXT}
"""Keys of speed, which is no probe: it times models side by side and scores nothing."""
KINDS = (*PROBES, "speed")
MAKE: dict[str, Callable[..., Any]] = {
    "ppl": Perplexity, "attribute": Attribution, "context": ContextLadder, "needle": Needle,
}  # fmt: skip
FIELDS = {"protocol": "protocols", "method": "methods", "task": "tasks", "length": "lengths"}
"""Keys whose field in the probe has another name."""


@dataclass(frozen=True)
class Asked:
    """What a suite file asks for."""

    name: str
    probe: Suite
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Its own keys but for the probes: models and schemes as tuples, the others as they stand there."""
    speed: Mapping[str, Any] | None = None
    """Fields of `speed.Speed`, where speed is asked for, too."""


def names() -> dict[str, str]:
    """Each shipped suite's name and its description."""
    return {p.stem: str(tomllib.loads(p.read_text("utf-8"))["description"]) for p in sorted(FOLDER.glob("*.toml"))}


def read(name_or_path: str) -> Asked:
    """The suite of that name, or of that file. Raises UserError with the key that is wrong and those there are."""
    path = FOLDER / f"{name_or_path}.toml"
    if not re.fullmatch(r"[\w-]+", name_or_path) or not path.is_file():
        path = Path(name_or_path).expanduser()
        if path.suffix != ".toml":
            there = ", ".join(names())
            raise UserError(f"suite {name_or_path}: there is none of that name; there are: {there}, or a file.toml")
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"suite {path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"suite {path}: not TOML: {error}") from None
    where = f"suite {path.name}"
    _check(where, table, KEYS)
    settings = {key: value for key, value in table.items() if key not in ("description", "probe")}
    for key in ("models", "schemes"):
        if key in settings:
            settings[key] = _words(f"{where}: {key}", settings[key], split=False)
    entries = table.get("probe")
    if not entries:
        raise UserError(f"{where}: it has no [[probe]]; each has a kind, one of {', '.join(KINDS)}")
    numbered = list(enumerate(entries, 1))
    timed = [(number, entry) for number, entry in numbered if isinstance(entry, dict) and entry.get("kind") == "speed"]
    parts = tuple(_part(where, number, entry) for number, entry in numbered if (number, entry) not in timed)
    if len(timed) > 1 or not parts:
        raise UserError(f"{where}: speed stands in it once at most, beside other probes; alone it is lengthbench speed")
    return Asked(path.stem, Suite(parts), settings, _speed(where, *timed[0]) if timed else None)


def _speed(where: str, number: int, entry: dict[str, Any]) -> dict[str, Any]:
    """Fields of `speed.Speed`."""
    here = f"{where}: probe {number} (speed)"
    options = {key: value for key, value in entry.items() if key != "kind"}
    _check(here, options, SPEED)
    if "phase" in options:
        options["phases"] = _words(f"{here}: phase", options.pop("phase"), split=True)
    return {key: _value(key, value) for key, value in options.items()}


def _part(where: str, number: int, entry: Any) -> Part:
    here = f"{where}: probe {number}"
    kind = entry.get("kind") if isinstance(entry, dict) else None
    if not isinstance(kind, str) or kind not in PROBES:
        said = "no kind" if kind is None else f"kind = {kind!r}"
        raise UserError(f"{here}: {said}; its kind is one of {', '.join(KINDS)}")
    name = f"probe {number} ({kind})"
    options: dict[str, Any] = {key: value for key, value in entry.items() if key != "kind"}
    _check(f"{where}: {name}", options, PROBES[kind])
    most = options.pop("max_tokens", None)
    if most is not None and most < 1:
        raise UserError(f"{where}: {name}: max_tokens = {most}: it must be 1 or more, for example 49152")
    try:
        return Part(name, MAKE[kind](**{FIELDS.get(k, k): _value(k, v) for k, v in options.items()}), most)
    except UserError as error:
        raise UserError(f"{where}: {name}: {error}") from None


def _value(key: str, value: Any) -> Any:
    """A key's value as the probe's field."""
    if key in ("lengths", "length"):
        found = lengths.parse(str(value), f"--{key}")
        return found if key == "lengths" else found[-1:]
    if key == "positions":
        return positions.parse(str(value))
    if key in ("protocol", "method", "arms", "task"):
        return _words(key, value, split=key != "task")
    return value


def _words(where: str, value: str | list, split: bool) -> tuple[str, ...]:
    """Each word once; a text is several `split` by commas."""
    if isinstance(value, str):
        value = value.split(",") if split else [value]
    for word in value:
        if not isinstance(word, str):
            raise UserError(f"{where} must be text, or a list of texts; it has {word!r} in it")
    return tuple(dict.fromkeys(word.strip() for word in value))


def _check(where: str, table: Mapping[str, Any], known: Mapping[str, tuple[type, ...]]) -> None:
    for key, value in table.items():
        if key not in known:
            raise UserError(f"{where}: unknown key '{key}'; the keys are: {', '.join(known)}")
        if type(value) not in known[key]:
            raise UserError(f"{where}: {key} must be {SAID[known[key]]}, it is {value!r}")
