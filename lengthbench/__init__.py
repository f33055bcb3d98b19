"""lengthbench from Python: `lengthbench.ppl(...)` returns the table that `lengthbench ppl` writes.

Everywhere, model is a name or a list of names as for --model, or an object of your own with `score(trials)`, or a
torch module over bytes (models/custom.py). Further keywords are the fields of `lengthbench.request.Request`; without
`out` nothing is kept on disk.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def ppl(
    model: Any = "reference:all",
    lengths: str | Sequence[int] | None = None,
    protocol: str = "nonoverlapping",
    stride: int | None = None,
    **request: Any,
) -> "pd.DataFrame":
    """Perplexity at growing lengths: ppl.csv as a frame, one row for each model, scheme, protocol and length."""
    from lengthbench.api import frame, tokens
    from lengthbench.probes.perplexity import Perplexity

    return frame(model, Perplexity(tokens(lengths), tuple(protocol.split(",")), stride), **request)


def attribute(
    model: Any = "reference:all",
    lengths: str | Sequence[int] | None = None,
    base: int | None = None,
    method: str = "cut",
    stride: int | None = None,
    **request: Any,
) -> "pd.DataFrame":
    """Early-token relief and use of far context: attribution.csv as a frame, one row a component."""
    from lengthbench.api import frame, tokens
    from lengthbench.probes.attribution import Attribution

    return frame(model, Attribution(tokens(lengths), base, tuple(method.split(",")), stride), **request)


def context(
    model: Any = "reference:all",
    length: int | None = None,
    stride: int | None = None,
    groups: int = 24,
    epsilon: float = 0.01,
    **request: Any,
) -> "pd.DataFrame":
    """The context ladder: context.csv as a frame, one row a rung."""
    from lengthbench.api import frame, tokens
    from lengthbench.probes.context import ContextLadder

    return frame(model, ContextLadder(tokens(length), None, stride, groups, epsilon), **request)
