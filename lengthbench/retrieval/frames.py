"""What a model's own format puts around a task: nothing, its chat template, or a text of one's own.

none     the task as it is                      for base models
chat     the tokenizer's chat template          refused where there is none
FILE     a text with {prompt} in it             for the format of a checkpoint that brings no template
"""

from pathlib import Path

from lengthbench.errors import UserError
from lengthbench.model import Tokenizer
from lengthbench.retrieval.prompt import Frame

PLACE = "{prompt}"


def around(template: str, tokenizer: Tokenizer) -> tuple[str, str]:
    """What stands before and after the prompt. Raises UserError for a template that there is not."""
    if template == "none":
        return "", ""
    if template == "chat":
        found = getattr(tokenizer, "chat", lambda: None)()
        if found is None:
            raise UserError(
                f"--template chat: the tokenizer {tokenizer.name} has no chat template; use --template none, "
                f"or a file with {PLACE} in it"
            )
        return found
    try:
        text = Path(template).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UserError(f"--template {template}: cannot be read ({why}); it is none, chat, or a text file") from None
    if text.count(PLACE) != 1:
        raise UserError(f"--template {template}: {PLACE} stands in it {text.count(PLACE)} times, it must once")
    before, _, after = text.partition(PLACE)
    return before, after


def default(tokenizer: Tokenizer, mode: str) -> str:
    """chat where text is generated and the tokenizer has a template, else none."""
    return "chat" if mode == "generate" and getattr(tokenizer, "chat", lambda: None)() else "none"


def frame(
    template: str, tokenizer: Tokenizer, start: int | None, budget: int | None, answer_prefix: bool = True
) -> Frame:
    """The frame in tokens. A template that begins with the start token brings it along."""
    before, after = (tokenizer.encode(text)[0] for text in around(template, tokenizer))
    own = start is not None and len(before) > 0 and int(before[0]) == start
    return Frame(None if own else start, before, after, budget, answer_prefix)
