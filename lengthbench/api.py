"""The Python side: the commands as functions that return frames."""

from collections.abc import Sequence
from typing import Any

import pandas as pd

from lengthbench import lengths as spelled
from lengthbench.measure import measure
from lengthbench.model import LoadOptions
from lengthbench.probes.probe import Probe
from lengthbench.request import Request


def frame(model: Any, probe: Probe, **request: Any) -> pd.DataFrame:
    """Run `probe` and return its summary; nothing is kept on disk without `out`."""
    models = tuple(model) if isinstance(model, list | tuple) else (model,)
    options = request.pop("options", LoadOptions())
    asked = Request(models=models, options=options, keep="out" in request, **request)
    outcome = measure(asked, probe)
    schema = probe.schemas[0]
    return pd.DataFrame(outcome.tables[schema.name], columns=list(schema.columns[:-1]))


def tokens(lengths: str | int | Sequence[int] | None) -> tuple[int, ...]:
    """Lengths as after --lengths, or numbers; empty for the default."""
    if lengths is None:
        return ()
    text = (
        lengths if isinstance(lengths, str) else ",".join(map(str, [lengths] if isinstance(lengths, int) else lengths))
    )
    return spelled.parse(text, "lengths")
