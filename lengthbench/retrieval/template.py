"""Templates: `{name}` and `{name.field}` are replaced once; what is put in is never read as a template again."""

import re
from collections.abc import Mapping
from typing import Any

from lengthbench.tasks import PLACEHOLDER


def fill(template: str, values: Mapping[str, Any]) -> str:
    return PLACEHOLDER.sub(lambda m: _value(m, values), template)


def variables(*templates: str) -> list[str]:
    """Names in order of appearance, each once."""
    return list(dict.fromkeys(name for text in templates for name, _ in PLACEHOLDER.findall(text)))


def pieces(template: str, values: Mapping[str, Any]) -> tuple[tuple[str, str | None], ...]:
    """The filled template cut into (text, variable or None); white space belongs to the variable behind it.

    " {code}, from {label}" -> (" 48213", code), (", from", None), (" 17", label)
    """
    found: list[tuple[str, str | None]] = []
    done = 0
    for match in PLACEHOLDER.finditer(template):
        between = template[done : match.start()]
        words = between.rstrip()
        if words:
            found.append((words, None))
        found.append((between[len(words) :] + _value(match, values), match[1]))
        done = match.end()
    if template[done:]:
        found.append((template[done:], None))
    return tuple(found)


def _value(match: re.Match, values: Mapping[str, Any]) -> str:
    found = values[match[1]]
    return str(found[match[2]] if match[2] else found)
