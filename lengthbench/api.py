"""The Python side: the commands as functions that return frames."""

from typing import Any

import pandas as pd

from lengthbench import lengths as spelled
from lengthbench.measure import sweep
from lengthbench.model import LoadOptions
from lengthbench.probes.perplexity_tables import PPL
from lengthbench.request import Request


def ppl(model: Any, lengths: str | list[int] | None, protocol: str, stride: int | None, **request: Any) -> pd.DataFrame:
    """See `lengthbench.ppl`."""
    text = lengths if isinstance(lengths, str) or lengths is None else ",".join(map(str, lengths))
    wanted = None if text is None else spelled.parse(text, "lengths")
    models = tuple(model) if isinstance(model, list | tuple) else (model,)
    options = request.pop("options", LoadOptions())
    asked = Request(models=models, options=options, keep="out" in request, **request)
    outcome = sweep(asked, wanted, tuple(protocol.split(",")), stride)
    return pd.DataFrame(outcome.tables["ppl"], columns=list(PPL.columns[:-1]))
