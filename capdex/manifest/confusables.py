"""Words that pass for other words: letters of another script that look like ASCII ones.

The table is Unicode's confusables (UTS 39), cut to what looks like an ASCII letter or digit.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from importlib.resources import files

_WORD = re.compile(r"[^\W_]+")


def deceptive_word(text: str) -> tuple[str, str] | None:
    """The first word of a name that reads as another, and that other; None when there is none.

    A word does if it mixes ASCII letters with letters that only look like such, or consists of the
    latter in a name that is otherwise ASCII: a name in Greek or Russian is no deception.
    """
    words = _WORD.findall(unicodedata.normalize("NFKC", text))
    any_ascii = any(word.isascii() and word.isalpha() for word in words)
    for word in words:
        if word.isascii():
            continue
        seen = word.translate(_table())
        mixed = any(c.isascii() and c.isalpha() for c in word)
        if seen.isascii() and (mixed or any_ascii):
            return word, seen
        if mixed and seen != word:
            return word, seen
    return None


@cache
def _table() -> dict[int, str]:
    document = json.loads(files("capdex").joinpath("data/confusables.json").read_text("utf-8"))
    rows: dict[str, str] = document["lookalikes"]
    return {int(code, 16): ascii_ for ascii_, codes in rows.items() for code in codes.split()}
