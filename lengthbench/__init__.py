"""lengthbench from Python: `lengthbench.ppl(...)` returns the table that `lengthbench ppl` writes."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def ppl(
    model: Any = "reference:all",
    lengths: str | list[int] | None = None,
    protocol: str = "nonoverlapping",
    stride: int | None = None,
    **request: Any,
) -> "pd.DataFrame":
    """Perplexity at growing lengths: ppl.csv as a frame, one row for each model, scheme, protocol and length.

    model: a name or a list of names as for --model, or an object of your own with `score(trials)` or a torch module
    over bytes (models/custom.py). Further keywords are the fields of `lengthbench.request.Request`; without `out`
    nothing is kept on disk.
    """
    from lengthbench.api import ppl as run

    return run(model, lengths, protocol, stride, **request)
