"""Exact fakes: models whose every loss is known beforehand, so that the whole path can be checked by hand.

    oracle:uniform                             ln 256 for every byte
    oracle:constant:nats=1                     1 nat for every token
    oracle:context:at=64,below=3,above=2       3 nats with fewer than 64 tokens of context, else 2
    oracle:index:at=513,below=1,above=2        2 nats from the 513th token of the window on (1-based), else 1
    oracle:power:nats=3,exponent=0.1,window=W  3 min(context, W)^-0.1
    oracle:byte:a=3,b=2,c=9                    3 nats for the byte 'a', ...; other bytes cost nothing
    oracle:copy:distance=400,hit=0.5,miss=3    0.5 nats where the token that far back in the window is the same, else 3
    oracle:recall:window=300,hit=0.1,miss=5    0.1 nats a byte if what is scored stands in the last 300 bytes, else 5

They read bytes, and a byte that has more than half of the probability is their first choice. `train=N` sets the
training length (256), `limit=N` a hard limit, `delay=S` sleeps S seconds a window, `gib=N` claims that much memory
for each token fed.
"""

import inspect
import math
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from lengthbench import registry
from lengthbench.errors import UserError
from lengthbench.model import Card, LoadOptions
from lengthbench.models.bytes import ByteTokenizer
from lengthbench.trials import Scores, Trial

Loss = Callable[[np.ndarray, Trial], np.ndarray]
"""Contexts (n,) and the trial -> losses (n,) in nats."""


def _context(at: float, below: float, above: float) -> Loss:
    return lambda context, trial: np.where(context < at, below, above)


def _index(at: float, below: float, above: float) -> Loss:
    return lambda context, trial: np.where(trial.rows + 1 < at, below, above)


def _power(nats: float, exponent: float, window: float) -> Loss:
    return lambda context, trial: nats * np.minimum(np.maximum(context, 1), window) ** -exponent


def _constant(nats: float) -> Loss:
    return lambda context, trial: np.full(len(context), nats)


def _uniform() -> Loss:
    return _constant(math.log(256))


def _byte(**nats: float) -> Loss:
    table = np.zeros(256)
    for character, cost in nats.items():
        table[ord(character)] = cost
    return lambda context, trial: table[trial.targets]


def _copy(distance: float, hit: float, miss: float) -> Loss:
    back = int(distance)

    def loss(context: np.ndarray, trial: Trial) -> np.ndarray:
        there = context >= back
        same = trial.tokens[np.where(there, trial.scored - back, 0)] == trial.targets
        return np.where(there & same, hit, miss)

    return loss


def _recall(window: float, hit: float = 0.1, miss: float = 5.0) -> Loss:
    def loss(context: np.ndarray, trial: Trial) -> np.ndarray:
        first = int(trial.scored[0])
        seen = trial.tokens[max(0, first - int(window)) : first].astype(np.uint8).tobytes()
        return np.full(len(context), hit if trial.targets.astype(np.uint8).tobytes() in seen else miss)

    return loss


COUNTS, AMOUNTS = ("train", "limit", "distance"), ("delay", "gib")
SPECIAL = ("train", "limit", "delay", "gib")
"""Keys that every kind takes."""
KINDS: dict[str, Callable[..., Loss]] = {
    "uniform": _uniform,
    "constant": _constant,
    "context": _context,
    "index": _index,
    "power": _power,
    "byte": _byte,
    "copy": _copy,
    "recall": _recall,
}


def describe(name: str, options: LoadOptions) -> Card:
    """`oracle:KIND[:key=value,...]` -> its card."""
    kind, params = registry.parse(name.partition(":")[2])
    if kind not in KINDS:
        raise UserError(f"{name}: no oracle of that kind; there are: {', '.join(KINDS)}")
    if options.scheme:
        raise UserError(
            f"{name} is an exact fake and has no position scheme; --scheme {options.scheme} cannot be put in"
        )
    numbers = {key: _number(name, key, value) for key, value in params.items()}
    special = {key: numbers.pop(key) for key in SPECIAL if key in numbers}
    _check_keys(name, kind, numbers)
    loss = KINDS[kind](**numbers)
    limit = special.get("limit")
    card = Card(
        name=name,
        scheme="oracle",
        scheme_params={},
        train_length=options.train_length or int(special.get("train", 256)),
        train_length_source="--train-length" if options.train_length else "trained",
        limit=int(limit) if limit else None,
        prefix_stable=True,
        load=lambda: Oracle(card, loss, special.get("delay", 0.0), special.get("gib", 0.0)),
    )
    return card


def _number(name: str, key: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        raise UserError(f"{name}: {key}={value} is not a number") from None
    if key in COUNTS and not (number >= 1 and number.is_integer()):
        raise UserError(f"{name}: {key}={value} tokens; give a whole number, 1 or more")
    if key in AMOUNTS and not 0 <= number < math.inf:
        raise UserError(f"{name}: {key}={value}; give 0 or more")
    return number


def _check_keys(name: str, kind: str, given: Iterable[str]) -> None:
    parameters = inspect.signature(KINDS[kind]).parameters
    own, needed = list(parameters), [key for key, p in parameters.items() if p.default is p.empty]
    if kind == "byte":
        takes = "one character for each byte that costs something"
        unknown, lacking = [key for key in given if len(key) > 1 or ord(key) > 255], []
    else:
        takes = ", ".join(own) or "no key of its own"
        unknown, lacking = [key for key in given if key not in own], [key for key in needed if key not in given]
    if unknown or lacking:
        wrong = f"no key '{unknown[0]}'" if unknown else f"{lacking[0]} is missing"
        raise UserError(f"{name}: {wrong}; oracle:{kind} takes {takes}; every kind takes {', '.join(SPECIAL)}")


class Oracle:
    def __init__(self, card: Card, loss: Loss, delay: float, gib: float) -> None:
        self.card, self.loss, self.delay, self.gib = card, loss, delay, gib
        self.tokenizer = ByteTokenizer()
        self.dtype, self.device, self.route, self.weights_sha256 = "float32", "cpu", "exact", card.name

    def score(self, trials: Sequence[Trial]) -> list[Scores]:
        time.sleep(self.delay * len(trials))
        return [self._score(trial) for trial in trials]

    def _score(self, trial: Trial) -> Scores:
        nll = self.loss(trial.scored, trial).astype(np.float32)
        return Scores(nll, nll < math.log(2))

    def extra_bytes(self, n_fed: int, batch: int) -> int:
        return int(self.gib * 2**30) * n_fed * batch
