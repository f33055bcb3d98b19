"""The folder is the registry: `schemes/alibi.py` is the scheme called `alibi`.

Listing reads docstrings without importing, so that `list` and a mistyped name answer before torch loads.
"""

import ast
import importlib
import importlib.util
import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lengthbench.errors import UserError

if TYPE_CHECKING:
    from lengthbench.scheme import Scheme, Shape

SCHEMES = Path(__file__).parent / "schemes"


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
        params[key.strip()] = value.strip()
    return name, params


def load(text: str, shape: "Shape") -> "Scheme":
    """Build the scheme that `text` names (`alibi`, `rope:theta=5e5`, `my.py:key=value`) for `shape`.

    Raises UserError for a name, a key or a value that does not exist; nothing is guessed.
    """
    name, given = parse(text)
    cls = _class(name)
    keywords = [p for p in inspect.signature(cls.__init__).parameters.values() if p.kind is p.KEYWORD_ONLY]
    params: dict[str, Any] = {p.name: p.default for p in keywords}
    for key, value in given.items():
        if key not in params:
            known = ", ".join(params) or "none"
            raise UserError(f"scheme {name} has no parameter '{key}'; it takes: {known}")
        params[key] = _convert(name, key, value, params[key])
    scheme = cls(shape, **params)
    scheme.name, scheme.params = Path(name).stem, params
    return scheme


def _class(name: str) -> "type[Scheme]":
    from lengthbench.scheme import Scheme

    if name.endswith(".py"):
        path = Path(name)
        if not path.is_file():
            raise UserError(f"scheme {name}: no such file")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    elif name in names():
        module = importlib.import_module(f"lengthbench.schemes.{name}")
    else:
        raise UserError(f"no scheme called '{name}'; there are: {', '.join(names())}, or a file.py of your own")
    found = [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Scheme) and c is not Scheme]
    if len(found) != 1:
        raise UserError(f"scheme {name}: the file must define exactly one subclass of Scheme, it has {len(found)}")
    return found[0]


def _convert(name: str, key: str, value: str, default: Any) -> Any:
    if isinstance(default, str):
        return value
    try:
        return type(default)(value)
    except ValueError:
        raise UserError(f"scheme {name}: {key}={value} is not a number; the default is {key}={default}") from None
