"""A trial is some tokens and the ones among them that must be predicted; scores are what that cost.

        start  tokens            scored   fed              context of tokens[p]
        None   x4 x5 x6 x7       1 2 3    x4 x5 x6         p real tokens
        BOS    x5 x6 x7          0 1 2    BOS x5 x6        p real tokens

The last token is never fed: nothing after it has to be predicted.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Trial:
    tokens: np.ndarray
    """(n,) token ids: those fed, then one more that is only predicted."""
    scored: np.ndarray
    """Positions in `tokens` to be predicted, ascending. 0 needs a start token."""
    start: int | None = None
    """Token fed in front, never scored, never counted as context."""
    key: Any = None
    """Whose trial this is; the probe that built it reads it back."""
    budget: int = 0
    """Tokens to generate behind `tokens`, which are then all fed; nothing is scored."""

    def __post_init__(self) -> None:
        if self.budget:
            assert not len(self.scored)
            return
        assert len(self.scored) and self.scored[-1] < len(self.tokens)
        assert self.scored[0] > 0 or self.start is not None

    @property
    def n_fed(self) -> int:
        """Length of the window in tokens, start token included."""
        return len(self.tokens) - (not self.budget) + (self.start is not None)

    @property
    def fed(self) -> np.ndarray:
        """(n_fed,) what the model reads."""
        read = self.tokens if self.budget else self.tokens[:-1]
        return read if self.start is None else np.concatenate([[self.start], read])

    @property
    def rows(self) -> np.ndarray:
        """(n_scored,) index into `fed` of the row that predicts each scored token."""
        return self.scored - (self.start is None)

    @property
    def targets(self) -> np.ndarray:
        """(n_scored,) the token ids to be predicted."""
        return self.tokens[self.scored]


@dataclass(frozen=True, eq=False)
class Scores:
    nll: np.ndarray
    """(n_scored,) float32 losses in nats, one for each scored token."""
    first_choice: np.ndarray
    """(n_scored,) bool: the token was the most probable one."""
    output: np.ndarray | None = None
    """(n,) tokens generated, up to and without an end token; None where nothing was to be generated."""
    ended: bool = True
    """Whether the model ended the output itself."""
