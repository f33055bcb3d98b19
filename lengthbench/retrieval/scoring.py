"""Whether generated text gives the answer: `exact` and `contains`, both on normalised text.

needle "The code for Oslo is 48213."     exact   contains
48213                                      1        1
The answer is 48213.                       0        1
The code for Oslo is 48213.                0        1
 48,213                                    1        1        digits in groups of three are one number
I do not know                              0        0
48213 or 91372                             0        0        several candidates are no answer
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from lengthbench.retrieval.occurs import occurs
from lengthbench.tasks import Draw

NORMALISER = "nfkc-casefold-digits-1"
"""Unicode NFKC, case folded, white space collapsed, `48,213` -> `48213`, quotes and full stops around it removed."""
GROUPED = re.compile(r"(?<![\d,.])\d{1,3}(?:[,\u202f\u00a0]\d{3})+(?![\d,])")
AROUND = " \t\n.,;:!?\"'`*_()[]{}<>«»“”‘’。、，．！？「」『』（）"
FORMS = {"digits": r"\d", "hex": "[0-9a-f]"}
"""Kinds of draw whose values are told from other words by their form."""


def normalise(text: str) -> str:
    # Before NFKC, which turns the narrow space between thousands into a plain one.
    joined = GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), text)
    folded = unicodedata.normalize("NFKC", joined).casefold()
    return " ".join(GROUPED.sub(lambda m: re.sub(r"\D", "", m[0]), folded).split()).strip(AROUND)


def exact(output: str, answer: str) -> bool:
    """The output is the answer and nothing else."""
    return normalise(output) == normalise(answer)


def contains(output: str, answers: Sequence[str], candidates: Iterable[str] = (), draw: Draw | None = None) -> bool:
    """The output names every answer and no other candidate."""
    text = normalise(output)
    named = all(occurs(normalise(answer), text) for answer in answers)
    return named and not other(output, answers, candidates, draw)


def other(output: str, answers: Sequence[str], candidates: Iterable[str] = (), draw: Draw | None = None) -> bool:
    """The output names something that could have been the answer, and is not.

    candidates: the wrong answers, a rule's value; draw: how the answer was drawn; if that gives digits or letters, any
    other string of that form is a candidate too.
    """
    rest, right = normalise(output), [normalise(answer) for answer in answers]
    for answer in sorted(right, key=len, reverse=True):
        rest = rest.replace(answer, " ")
    if any(occurs(one, rest) for one in map(normalise, candidates) if one not in right):
        return True
    if draw is None or draw.kind not in FORMS:
        return False
    form = re.compile(rf"(?<![0-9a-z]){FORMS[draw.kind]}{{{draw.size}}}(?![0-9a-z])")
    # Eight letters of a to f may be a word; with a digit among them they are a value.
    return any(re.search(r"\d", found) for found in form.findall(rest))
