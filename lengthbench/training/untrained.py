"""What `speed --scheme` times: a reference decoder that nobody trained, and one update of its training.

Weights do not change how long a pass takes, so a scheme's cost is known without a model that has it. The decoder's
shape is that of the shipped family and its training length the length asked for, so every scheme reaches it.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

from lengthbench import registry
from lengthbench.engine import SPARE
from lengthbench.errors import OutOfMemory
from lengthbench.memory import available
from lengthbench.model import Card, LoadOptions
from lengthbench.models.attention import route
from lengthbench.models.decoder import Decoder, DecoderConfig
from lengthbench.models.device import device
from lengthbench.models.loss import Head
from lengthbench.models.reference import ReferenceModel, tokenizer
from lengthbench.training.batches import Batches
from lengthbench.training.loop import train
from lengthbench.training.recipe import Recipe

VOCABULARY = 256
STATES = 64
"""Vectors of the model's width that a token keeps in each layer for the way back, an upper estimate."""


def card(scheme: str, length: int, options: LoadOptions) -> Card:
    """The card of a decoder with `scheme` that reaches `length`."""
    config = Recipe(scheme, length).decoder(VOCABULARY)
    found = registry.load(scheme, config.shape)
    own = Card(
        name=scheme,
        scheme=found.name,
        scheme_params=found.params,
        train_length=length,
        train_length_source="--lengths",
        limit=found.hard_limit,
        prefix_stable=found.prefix_stable,
        load=lambda: Untrained(own, config, options),
    )
    return own


class Untrained(ReferenceModel):
    """A reference decoder with the weights that a training starts from."""

    def __init__(self, card: Card, config: DecoderConfig, options: LoadOptions) -> None:
        self.card, self.config = card, config
        self.device = device(options.device)
        self.dtype = "float32" if options.dtype == "auto" else options.dtype
        with torch.random.fork_rng():
            network = Decoder(config)
        self.network = network.to(self.device, getattr(torch, self.dtype)).eval()
        self.head = Head(self.network.head)
        self.weights_sha256 = "untrained"
        self.tokenizer = tokenizer("bytes", Path())
        self.route = route(self.network.scheme.distance_table(2) is not None, self.device)


def update(scheme: str, length: int, batch: int) -> tuple[float, int]:
    """Seconds of one update over `batch` windows of `length` tokens, the quicker of two, and bytes at the peak.

    Raises OutOfMemory before it starts if it cannot fit: on a CPU the kernel kills, it does not raise.
    """
    recipe = Recipe(scheme, length, tokens=2 * batch * length, batch=batch, recall=0.0)
    needed, free = _bytes(recipe), available()
    if free is not None and needed > SPARE * free:
        raise OutOfMemory(f"an update needs about {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free")
    text = np.random.default_rng(0).integers(0, VOCABULARY, 2 * length + 1)
    ends: list[float] = []
    with TemporaryDirectory() as folder:
        _, progress = train(
            recipe, Batches([text], None, recipe), VOCABULARY, Path(folder), lambda p, _: ends.append(p.seconds)
        )
    return min(ends[0], ends[1] - ends[0]), progress.peak_memory_bytes


def _bytes(recipe: Recipe) -> int:
    """States that the way back needs and the logits; weights of attention only where a bias has a gradient."""
    tokens = recipe.batch * recipe.train_length
    config = recipe.decoder(VOCABULARY)
    states = tokens * recipe.width * recipe.layers * STATES
    scheme = registry.load(recipe.scheme, config.shape)
    biased = scheme.learned and scheme.distance_table(2) is not None
    pairs = tokens * recipe.train_length * recipe.heads * recipe.layers if biased else 0
    return 4 * (states + 3 * tokens * VOCABULARY + pairs)
