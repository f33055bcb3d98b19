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
    """The output names every answer and no other candidate.

    candidates: other texts that could have been the answer (the wrong ones, a rule's value). draw: how the answer was
    drawn; if that gives digits or letters, any other string of that form is a candidate too.
    """
    text, right = normalise(output), [normalise(answer) for answer in answers]
    if not all(occurs(answer, text) for answer in right):
        return False
    rest = text
    for answer in sorted(right, key=len, reverse=True):
        rest = rest.replace(answer, " ")
    if any(occurs(other, rest) for other in map(normalise, candidates) if other not in right):
        return False
    if draw is None or draw.kind not in FORMS:
        return True
    form = re.compile(rf"(?<![0-9a-z]){FORMS[draw.kind]}{{{draw.size}}}(?![0-9a-z])")
    # Eight letters of a to f may be a word; with a digit among them they are a value.
    return not any(re.search(r"\d", found) for found in form.findall(rest))
