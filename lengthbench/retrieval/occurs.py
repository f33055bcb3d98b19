"""Whether a text holds a value: as a word of its own, in any case; in scripts without spaces, anywhere."""

import re


def occurs(value: str, text: str) -> bool:
    """`14` does not occur in `1432`, `oslo` does in `Oslo's`, `猫` does in `子猫`."""
    if not value or value.casefold() not in text.casefold():
        return False
    before = r"(?<![0-9A-Za-z])" if value[0].isascii() and value[0].isalnum() else ""
    behind = r"(?![0-9A-Za-z])" if value[-1].isascii() and value[-1].isalnum() else ""
    return re.search(before + re.escape(value) + behind, text, re.IGNORECASE) is not None
