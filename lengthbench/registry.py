"""The folder is the registry: `schemes/alibi.py` is the scheme called `alibi`.

Listing reads docstrings without importing, so that `list` and a mistyped name answer before torch loads.
"""

import ast
import importlib
import inspect
import math
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthbench import files
from lengthbench.errors import UserError

if TYPE_CHECKING:
    from lengthbench.scheme import Scheme, Shape

SCHEMES = Path(__file__).parent / "schemes"
SWITCH = {"true": True, "false": False}


def names() -> dict[str, str]:
    """Each scheme's name and the first line of its docstring; imports none of them."""
    files = sorted(p for p in SCHEMES.glob("*.py") if p.stem != "__init__")
    return {p.stem: (ast.get_docstring(ast.parse(p.read_text("utf-8"))) or "").split("\n")[0] for p in files}


def parse(text: str) -> tuple[str, dict[str, str]]:
    """`rope:theta=5e5,partial=0.5` -> ("rope", {"theta": "5e5", "partial": "0.5"})."""
    name, _, rest = text.strip().partition(":")
    params = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UserError(f"--scheme {text}: '{part}' is not key=value, for example rope:theta=500000")
        if key.strip() in params:
            raise UserError(f"--scheme {text}: {key.strip()} is given twice; give it once")
        params[key.strip()] = value.strip()
    return name, params


def load(text: str, shape: "Shape") -> "Scheme":
    """Build the scheme that `text` names (`alibi`, `rope:theta=5e5`, `my.py:key=value`) for `shape`.

    Its `params` are what it set itself, resolved (`original=0` may mean the shape's training length), else what was
    given, defaults included. Raises UserError for a name, a key or a value that does not exist; nothing is guessed.
    """
    name, given = parse(text)
    cls, params = _class(name), parameters(name)
    for key, value in given.items():
        if key not in params:
            known = ", ".join(params) or "none"
            raise UserError(f"scheme {name} has no parameter '{key}'; it takes: {known}")
        params[key] = _convert(name, key, value, params[key])
    with files.blamed(Path(name)) if name.endswith(".py") else nullcontext():
        scheme = cls(shape, **params)
    scheme.name = Path(name).stem
    if "params" not in vars(scheme):
        scheme.params = params
    return scheme


def parameters(name: str) -> dict[str, Any]:
    """Names and defaults of the parameters that the scheme called `name` takes."""
    keywords = [p for p in inspect.signature(_class(name).__init__).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for p in keywords:
        if p.default is p.empty:
            raise UserError(
                f"scheme {name}: '{p.name}' has no default in __init__; give it one, it says what kind it is"
            )
    return {p.name: p.default for p in keywords}


def _class(name: str) -> "type[Scheme]":
    from lengthbench.scheme import Scheme

    if name.endswith(".py"):
        module = files.module(Path(name))
    elif name in names():
        module = importlib.import_module(f"lengthbench.schemes.{name}")
    else:
        raise UserError(f"no scheme called '{name}'; there are: {', '.join(names())}, or a file.py of your own")
    found = {c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Scheme)}
    found = [c for c in found if c.__module__ == module.__name__]  # what it imports is another file's
    if len(found) != 1:
        raise UserError(f"scheme {name}: the file must define exactly one subclass of Scheme, it has {len(found)}")
    return found[0]


def _convert(name: str, key: str, value: str, default: Any) -> Any:
    """`value` as the kind of number that the default is; text stays text."""
    if isinstance(default, str):
        return value
    if not isinstance(default, int | float):
        raise UserError(f"scheme {name}: '{key}' cannot be set: its default in __init__ is neither a number nor a text")
    try:
        found = SWITCH[value.lower()] if isinstance(default, bool) else type(default)(value)
    except (KeyError, ValueError):
        kind = (
            "true or false"
            if isinstance(default, bool)
            else "a whole number"
            if isinstance(default, int)
            else "a number"
        )
        raise UserError(f"scheme {name}: {key}={value} is not {kind}; the default is {key}={default}") from None
    if isinstance(found, float) and not math.isfinite(found):
        raise UserError(f"scheme {name}: {key}={value} is not finite; the default is {key}={default}")
    return found
