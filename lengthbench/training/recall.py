"""Synthetic recall: a key stated in running prose, then asked for again and again, further and further on.

        prose  "The password is 48213."  prose  "So the password is 48213."  longer prose  "So the ... 48213."
        0.3     0.3                      0.3     0.3               5          0.3                       5      weight

Every answer is supervised with a large weight, and short distances come first: asked once a sequence, recall
had not formed after 2M tokens; asked like this it forms within 4M.
"""

import functools

import numpy as np

WORDINGS = (
    ("The password is ", "So the password is "),
    ("Remember that the key is ", "As you remember, the key is "),
    ("Write down the number ", "You wrote down the number "),
    ("The ticket bears the number ", "And the ticket still bears the number "),
)
"""Statement and question; the five digits and a full stop follow."""
ANSWER_WEIGHT = 5.0
PROSE_WEIGHT = 0.3
FIRST_REACH = 16
"""Longest stretch of prose before a question at the start of the training, in tokens."""
RAMP = 0.4
"""Share of the training after which the longest stretch is as long as the window."""


def build(rng: np.random.Generator, prose: np.ndarray, tokenizer, length: int, progress: float):
    """One training sequence: tokens (length + 1,) and the weight (length + 1,) of predicting each.

    `prose` is (length + 1,) or more tokens of running text; `progress` in 0..1 sets the longest distance.
    """
    reach = FIRST_REACH + (length - FIRST_REACH) * min(1.0, progress / RAMP)
    statement, question = WORDINGS[rng.integers(len(WORDINGS))]
    key = encode(tokenizer, "".join(map(str, rng.integers(0, 10, 5))))
    stop = encode(tokenizer, ". ")
    tokens, weights, used = [], [], 0

    def add(piece: np.ndarray, weight: float) -> None:
        tokens.append(piece)
        weights.append(np.full(len(piece), weight, np.float32))

    def add_prose(longest: float) -> None:
        nonlocal used
        n = int(np.exp(rng.uniform(np.log(2), np.log(max(longest, 3)))))
        add(prose[used : used + n], PROSE_WEIGHT)
        add(stop, PROSE_WEIGHT)
        used += n

    add_prose(length / 3)
    add(encode(tokenizer, statement), PROSE_WEIGHT)
    add(key, PROSE_WEIGHT)
    add(stop, PROSE_WEIGHT)
    while sum(map(len, tokens)) <= length:
        add_prose(reach)
        add(encode(tokenizer, question), PROSE_WEIGHT)
        add(key, ANSWER_WEIGHT)
        add(stop, PROSE_WEIGHT)
    return np.concatenate(tokens)[: length + 1], np.concatenate(weights)[: length + 1]


@functools.lru_cache(maxsize=4096)
def encode(tokenizer, text: str) -> np.ndarray:
    return tokenizer.encode(text)[0]
