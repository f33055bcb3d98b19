"""Reference models: `reference:alibi` from the shipped family, or a folder that `lengthbench train` made.

A folder holds config.json (the decoder's shape and scheme), model.safetensors (any float type; computed in
float32 unless asked otherwise) and training.json (updates, tokens, seconds, peak memory, data hash, seed).
"""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthbench import registry
from lengthbench.errors import UserError
from lengthbench.files import sha256
from lengthbench.model import Card, LoadOptions, Tokenizer
from lengthbench.trials import Scores, Trial

if TYPE_CHECKING:
    from lengthbench.models.decoder import Decoder

FAMILY = Path(__file__).parents[1] / "family"
MODEL_TYPE = "lengthbench_decoder"
ORDER = ("none", "learned", "sinusoidal", "rope", "t5", "alibi")


def family() -> list[str]:
    """Names of the shipped models, in the order they are reported."""
    shipped = [p.parent.name for p in FAMILY.glob("*/model.safetensors")]
    return sorted(shipped, key=lambda name: (ORDER.index(name) if name in ORDER else len(ORDER), name))


def is_folder(path: Path) -> bool:
    """Whether `path` was made by `lengthbench train`."""
    config = path / "config.json"
    return config.is_file() and f'"{MODEL_TYPE}"' in config.read_text("utf-8", errors="replace")


def describe(name: str, folder: Path, options: LoadOptions) -> Card:
    """The card of the model in `folder`, from its JSON files; `card.load()` reads the weights."""
    if not (folder / "config.json").is_file():
        known = ", ".join(f"reference:{n}" for n in family())
        raise UserError(f"{name}: no such reference model; there are: reference:all, {known}")
    config = _read(folder / "config.json")
    record = _read(folder / "training.json")
    scheme = _scheme(name, config, options.scheme)
    doubt = scheme.warning()
    card = Card(
        name=name,
        scheme=scheme.name,
        scheme_params=scheme.params,
        train_length=options.train_length or config["train_length"],
        train_length_source="--train-length" if options.train_length else "trained",
        limit=scheme.hard_limit,
        prefix_stable=scheme.prefix_stable,
        load=lambda: ReferenceModel(card, folder, config, options),
        warnings=(doubt,) if doubt else (),
        facts={"path": _place(folder), "config": config, "training": record},
    )
    return card


def _place(folder: Path) -> str:
    """Where the model lies; for the shipped ones where in the package, which is the same on every machine."""
    return f"lengthbench/family/{folder.name}" if folder.parent == FAMILY else str(folder)


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}") from None


def _scheme(name: str, config: dict[str, Any], override: str | None):
    """The scheme the model runs with; one with weights of its own cannot replace the one it was trained with."""
    from lengthbench.scheme import Shape

    shape = Shape(config["width"], config["heads"], config["train_length"])
    own = registry.load(config["scheme"], shape)
    if override is None:
        return own
    scheme = registry.load(inherited(override, config["scheme"]), shape)
    if scheme.learned and scheme.name != own.name:
        raise UserError(
            f"{name} was trained with {own.name}: it has no weights for --scheme {override}; "
            f"use reference:{scheme.name}, or train one with: lengthbench train --scheme {override}"
        )
    return scheme


def inherited(override: str, own: str) -> str:
    """`override` with the base and the share of rotating channels that the model was trained with, unless it says so.

    p_rope's `partial` is another share: that of the frequencies it keeps.
    """
    name, given = registry.parse(override)
    trained = registry.parse(own)[1]
    shared = {"theta", "partial"} if name != "p_rope" else {"theta"}
    taken = {k: v for k, v in trained.items() if k in shared & registry.parameters(name).keys()} | given
    return name + (":" + ",".join(f"{k}={v}" for k, v in taken.items()) if taken else "")


class ReferenceModel:
    """A trained reference decoder, ready to score."""

    def __init__(self, card: Card, folder: Path, config: dict[str, Any], options: LoadOptions) -> None:
        import torch

        from lengthbench.models.decoder import Decoder, DecoderConfig
        from lengthbench.models.device import device
        from lengthbench.models.loss import Head

        self.card = card
        self.device = device(options.device)
        self.dtype = "float32" if options.dtype == "auto" else options.dtype
        fields = {f.name: config[f.name] for f in dataclasses.fields(DecoderConfig)}
        fields["scheme"] = inherited(options.scheme, config["scheme"]) if options.scheme else config["scheme"]
        self.config = DecoderConfig(**fields)
        with torch.random.fork_rng():
            network = Decoder(self.config)
        _fill(network, folder / "model.safetensors", card.name)
        self.network = network.to(self.device, getattr(torch, self.dtype)).eval()
        self.head = Head(self.network.head)
        self.weights_sha256 = sha256([folder / "model.safetensors"])
        self.tokenizer = tokenizer(config["tokenizer"], folder)
        self.route = _route(self.network, self.device)

    def score(self, trials: Sequence[Trial]) -> list[Scores]:
        from lengthbench.models import torch_scoring

        return torch_scoring.score(trials, self.network.hidden, self.head)

    @property
    def chains(self) -> bool:
        return self.card.prefix_stable

    def score_chain(self, trials: Sequence[Trial], shared: Sequence[int]) -> list[Scores]:
        from lengthbench.models import torch_scoring
        from lengthbench.models.decoder import Past

        past = Past(self.network, max(t.n_fed for t in trials))
        return torch_scoring.score_chain(trials, shared, past, self.network.hidden, self.head)

    def generate(self, trials: Sequence[Trial]) -> list[Scores]:
        from lengthbench.models import torch_scoring
        from lengthbench.models.decoder import Past

        def past(size: int) -> Past:
            return Past(self.network, size)

        return torch_scoring.generate(trials, past, self.network.hidden, self.head)

    def extra_bytes(self, n_fed: int, batch: int) -> int:
        from lengthbench.models.loss import ROWS, TILE

        activations = batch * n_fed * self.config.width * 4 * 16
        mask = self.config.heads * n_fed * 4 * 8
        past = 2 * self.config.layers * n_fed * self.config.width * 4
        return activations + mask + past + 4 * ROWS * min(TILE, self.config.vocabulary) * 4


def tokenizer(name: str, folder: Path) -> Tokenizer:
    """`bytes`, or the tokenizers file of that name in the model's folder."""
    if name == "bytes":
        from lengthbench.models.bytes import ByteTokenizer

        return ByteTokenizer()
    from lengthbench.models.tokenizers_file import FileTokenizer

    return FileTokenizer(folder / name)


def _fill(network: "Decoder", path: Path, name: str) -> None:
    """Copy the file's tensors into the network; refuse missing, unknown and misshapen ones by name."""
    import torch
    from safetensors.torch import load_file

    try:
        tensors = load_file(path)
    except Exception as error:  # safetensors raises a type of its own that it does not export
        raise UserError(f"{name}: {path} cannot be read: {error}") from None
    # A replaced scheme brings or needs no weights, the trained one's stay unused.
    wanted = dict(network.named_parameters())
    tensors = {k: v for k, v in tensors.items() if k in wanted or not k.startswith("scheme.")}
    wrong = sorted(wanted.keys() ^ tensors.keys())
    wrong += [k for k in wanted.keys() & tensors.keys() if wanted[k].shape != tensors[k].shape]
    if wrong:
        raise UserError(f"{name}: {path} does not fit config.json: {', '.join(wrong)} missing, unknown or misshapen")
    with torch.no_grad():
        for key, parameter in wanted.items():
            parameter.copy_(tensors[key])


def _route(network: "Decoder", device: str) -> str:
    from lengthbench.models.attention import route

    return route(network.scheme.distance_table(2) is not None, device)
