"""Where a text may be opened: between sentences, between words, between characters.

    She left.| The| house| was| empty.|        | behind a sentence or a word, in front of the white space
    雨がやんだ。|猫|が|帰|って|きた。|            scripts without spaces: any two letters may be parted

A place counts only where a token ends too, so no token is ever split.
"""

import re

import numpy as np

TITLES = {"mr", "mrs", "ms", "dr", "st", "messrs", "esq", "rev", "col", "capt", "no", "vol", "mme", "mlle", "mm", "vs"}
"""A full stop behind these ends no sentence."""
CJK = "぀-ヿ㐀-䶿一-鿿豈-﫿ｦ-ﾝ"
SENTENCE = re.compile(r"[.!?…]+[\"'”’»)\]_*]*(?=\s+[^\sa-z]|\s*$)|[。！？｡]+[」』”’）》】]*|\S(?=\s*\n)")
WORD = re.compile(rf"\S(?=\s)|[{CJK}](?=[{CJK}])")
LAST_WORD = re.compile(r"(\w+)\.$")


def sentences(text: str) -> np.ndarray:
    """Character offsets behind each sentence, heading or paragraph."""
    return np.array([m.end() for m in SENTENCE.finditer(text) if not _abbreviated(text, m)], np.int64)


def words(text: str) -> np.ndarray:
    """Character offsets behind each word; ー and small kana stay with the letter before them."""
    found = (m.end() for m in WORD.finditer(text))
    return np.array([at for at in found if text[at] not in "ぁぃぅぇぉっゃゅょァィゥェォッャュョー"], np.int64)


def _abbreviated(text: str, match: re.Match) -> bool:
    if match[0] != "." or text[match.end() :].lstrip(" ")[:1] in ("", "\n"):
        return False
    word = LAST_WORD.search(text, max(0, match.start() - 12), match.end())
    return bool(word) and (word[1].lower() in TITLES or (len(word[1]) == 1 and word[1].isupper() and word[1] != "I"))


def edges(text: str, offsets: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Character offsets -> numbers of tokens before them, where a token ends exactly there.

    ends: (n + 1,) bytes of the text completed by the first n tokens.
    """
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    widths = 1 + (points > 0x7F) + (points > 0x7FF) + (points > 0xFFFF)
    at = np.concatenate([[0], np.cumsum(widths)])[offsets] if len(offsets) else np.zeros(0, np.int64)
    # The first of several: a token that completes nothing begins the next character.
    found = np.searchsorted(ends, at)
    return np.unique(found[ends[np.minimum(found, len(ends) - 1)] == at])
