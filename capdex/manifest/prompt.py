"""Placeholders of a package's prompt: `{{name}}`, which stands for text given at the time of use.

NIP-7 calls the prompt a template and gives no syntax; this is the one that its clients use. A
placeholder without a value stays as it is, so a prompt that means the braces literally is not hurt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from capdex.errors import Code, InvalidInput

MAX_PLACEHOLDERS: Final = 16  # different names that a prompt may take; others stay as they are
MAX_FILLED_CHARS: Final = 128 * 1024  # a prompt can repeat a value thousands of times
_PLACEHOLDER = re.compile(r"\{\{ ?([A-Za-z][A-Za-z0-9_]{0,63}) ?\}\}", re.ASCII)


def placeholders(prompt: str) -> list[str]:
    """Return the names of the placeholders of a prompt, each once, in order."""
    return list(dict.fromkeys(_PLACEHOLDER.findall(prompt)))[:MAX_PLACEHOLDERS]


def fill(prompt: str, values: Mapping[str, str]) -> str:
    """Return the prompt with the values of its placeholders; values are not searched again.

    Raises InvalidInput TOO_LARGE if the result has more than `MAX_FILLED_CHARS` characters.
    """
    known = {name: values[name] for name in placeholders(prompt) if name in values}
    matches = [x for x in _PLACEHOLDER.finditer(prompt) if x[1] in known]
    length = len(prompt) + sum(len(known[x[1]]) - len(x[0]) for x in matches)
    if matches and length > MAX_FILLED_CHARS:
        raise InvalidInput(
            f"the prompt with these values has {length} characters, at most {MAX_FILLED_CHARS}",
            Code.TOO_LARGE,
            fix="give shorter values",
        )
    return _PLACEHOLDER.sub(lambda x: known.get(x[1], x[0]), prompt)
