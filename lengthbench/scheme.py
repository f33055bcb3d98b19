"""The position scheme: the one thing that differs between two reference models.

A scheme is one file in `schemes/`, named as users name it, with one subclass of `Scheme` that overrides
only the doors it uses. Its parameters are the keyword arguments of `__init__`; `rope:theta=5e5` sets one.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn


@dataclass(frozen=True)
class Shape:
    """What a scheme must know of the model it lives in."""

    width: int
    """Channels of the residual stream."""
    heads: int
    train_length: int
    """Longest window of the training run, in tokens."""

    @property
    def head_width(self) -> int:
        return self.width // self.heads


class Scheme(nn.Module):
    """Where the order of tokens enters the model. Every door is optional.

    Positions are (T,) integers; tables and angles are made in float64 and only then cast, because
    float32 angles are off by 3e-3 at 131k tokens and bfloat16 cannot tell 256 from 257.
    """

    name: str
    params: dict[str, Any]
    """Every parameter as resolved, defaults included; recorded with each row."""
    learned = False
    """Has weights of its own, so it cannot be put into a model trained without it."""
    hard_limit: int | None = None
    """Longest window it is defined for, in tokens."""
    prefix_stable = True
    """The loss at p does not depend on how long the window is, so one long pass serves every prefix."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape

    def embed(self, x: Tensor, pos: Tensor) -> Tensor:
        """Absolute positions: token embeddings (B, T, W) of unit variance -> the same plus positions."""
        return x

    def rotate(self, q: Tensor, k: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
        """Rotary positions: queries and keys (B, H, T, D) -> the same, rotated."""
        return q, k

    def distance_table(self, length: int) -> Tensor | None:
        """(H, length): what is added to a scaled logit at distance i - j = 0 .. length-1, or None."""
        return None

    def warning(self) -> str | None:
        """Why this scheme in this shape deserves a doubt, in one line."""
        return None
