"""Prompts made by others: jsonl with `input`, `outputs` and `length`, as RULER and the LM Evaluation Harness write it.

    {"index": 0, "input": "A special magic number ...", "outputs": ["7238122"], "length": 4096}

Their lengths were counted with their tokenizer; ours is counted anew. `answer_prefix` or `gen_prefix`, where there is
one, stands behind the input. Other fields are passed over.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lengthbench.errors import UserError
from lengthbench.model import Tokenizer
from lengthbench.retrieval import encode, rows
from lengthbench.retrieval.encode import NONE
from lengthbench.retrieval.prompt import PLAIN, Answer, Frame, Prompt

PREFIXES = ("answer_prefix", "gen_prefix")


@dataclass(frozen=True)
class Given:
    line: int
    """In the file, from 1."""
    input: str
    outputs: tuple[str, ...]
    """All of them are asked for."""
    length: int | None
    """Tokens, as its maker counted them."""
    prefix: str
    """Words that lead into the answer."""


def read(path: Path) -> tuple[Given, ...]:
    """Every row. Raises UserError with the lines that cannot be used."""
    found, bad = [], []
    for number, row in rows.objects(path, "--jsonl"):
        outputs = row.get("outputs")
        outputs = [outputs] if isinstance(outputs, str) else outputs
        if why := _wrong_with(row, outputs):
            bad.append(f"line {number} ({why})")
            continue
        prefix = next((row[key] for key in PREFIXES if isinstance(row.get(key), str)), "")
        found.append(Given(number, row["input"], tuple(map(str, outputs or ())), row.get("length"), prefix))
    rows.refuse(f"--jsonl {path}", bad, len(found))
    return tuple(found)


def build(given: Given, tokenizer: Tokenizer, frame: Frame = PLAIN) -> Prompt:
    """Its prompt as it stands, the outputs joined with a comma as the answer; no evidence is known in it."""
    first = encode.inside if len(frame.before) else encode.opening
    question = first(tokenizer, given.input)
    lead = encode.inside(tokenizer, given.prefix) if frame.answer_prefix else NONE
    text = ", ".join(given.outputs)
    ending = (given.input + (given.prefix if frame.answer_prefix else ""))[-1]
    tokens = encode.inside(tokenizer, text if ending.isspace() else " " + text)
    answer = Answer(text, tokens, {"answer": np.arange(len(tokens), dtype=np.int32)})
    parts = {"start": int(frame.start is not None), "before": len(frame.before), "question": len(question)}
    parts |= {"after": len(frame.after), "answer_prefix": len(lead)}
    parts["answer"] = len(tokens) if frame.budget is None else frame.budget
    joined = [frame.before, question, frame.after, lead]
    answer_at = sum(map(len, joined))
    fed = np.concatenate([*joined, tokens] if frame.budget is None else joined).astype(np.int32)
    return Prompt(
        "evidence", sum(parts.values()), fed, frame.start, answer, (), answer_at, (), None, parts, parts["answer"]
    )


def check(given: Given, prompt: Prompt, limit: int | None) -> None:
    """Refuse a prompt that is longer than the model can be fed."""
    if limit is not None and prompt.length > limit:
        raise UserError(
            f"--jsonl line {given.line}: {prompt.length} tokens, the model takes at most {limit}; leave it out"
        )


def _wrong_with(row: dict[str, Any], outputs: Any) -> str | None:
    if not isinstance(row.get("input"), str) or not row["input"].strip():
        return f"no text in 'input'; it has: {', '.join(row)}"
    if not isinstance(outputs, list) or not outputs or not all(isinstance(o, str | int) for o in outputs):
        return "'outputs' is not a list of texts"
    length = row.get("length")
    if length is not None and (not isinstance(length, int) or isinstance(length, bool)):
        return "'length' is not a whole number"
    return None
