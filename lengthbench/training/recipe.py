"""The recipe: everything that decides what a reference model becomes; the defaults made the shipped family."""

from dataclasses import asdict, dataclass

from lengthbench.errors import UserError
from lengthbench.models.decoder import DecoderConfig


@dataclass(frozen=True)
class Recipe:
    scheme: str
    train_length: int = 256
    """Tokens fed in each training window."""
    tokens: int = 8_000_000
    """Budget, in tokens fed; rounded up to a whole update."""
    layers: int = 4
    width: int = 128
    heads: int = 8
    batch: int = 16
    """Windows an update."""
    learning_rate: float = 3e-3
    """Peak, after the warm-up; a cosine then brings it to a tenth."""
    warmup: int = 100
    """Updates."""
    weight_decay: float = 0.1
    """On matrices only."""
    recall: float = 0.5
    """Share of the windows that are recall exercises (recall.py); the others are plain text."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("train_length", "tokens", "layers", "width", "heads", "batch"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name.replace('_', '-')} {getattr(self, name)}: must be 1 or more")
        if self.width % self.heads or (self.width // self.heads) % 2:
            raise UserError(
                f"--width {self.width} --heads {self.heads}: a head gets {self.width / self.heads:g} channels; "
                "it must be an even whole number, for example --width 128 --heads 8"
            )
        if not 0 <= self.recall <= 1:
            raise UserError(f"--recall {self.recall}: a share between 0 and 1")

    @property
    def updates(self) -> int:
        return -(-self.tokens // (self.batch * self.train_length))

    def decoder(self, vocabulary: int) -> DecoderConfig:
        return DecoderConfig(self.scheme, self.train_length, self.layers, self.width, self.heads, vocabulary)

    def as_dict(self) -> dict:
        return asdict(self)
