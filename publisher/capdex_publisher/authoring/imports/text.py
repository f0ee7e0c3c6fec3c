"""Names and texts of strangers in the form that a package may hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

import jsonschema_rs

from capdex.errors import InvalidInput
from capdex.manifest.tools import NAME
from capdex.uri import MAX_NAME_CHARS, check_name
from capdex.yaml.characters import forbidden

_LONE_SURROGATES = re.compile("[\ud800-\udfff]")


def name_of(text: str) -> str:
    """Return a capability name made of a title; empty if it has no usable letter."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = "-".join(words)[:MAX_NAME_CHARS].strip("-")
    name = name.lstrip("0123456789-")
    try:
        return check_name(name)
    except InvalidInput:
        return ""


def tool_name_of(text: str, taken: Sequence[str], others: Sequence[str] = ()) -> str:
    """Return a tool name made of a text, and none of `taken`: 1 to 64 of A-Z, a-z, 0-9, _ and -.

    A text that is a name stays as it is; one that is not takes none of `others`, either.
    """
    if NAME.fullmatch(text) and text not in taken:
        return text
    base = re.sub(r"[^A-Za-z0-9_-]+", "_", text).strip("_")[:60] or "tool"
    name, number = base, 2
    while name in taken or name in others:
        name, number = f"{base}_{number}", number + 1
    return name


def clean(value: object) -> str:
    """Return text of a stranger without the characters that a package may not hold."""
    text = _LONE_SURROGATES.sub("", str(value or ""))
    while hidden := set(forbidden(text)):  # without one, another may stand where it may not
        text = "".join(char for i, char in enumerate(text) if i not in hidden)
    return text.strip()


def cut(text: str, most_bytes: int) -> str:
    """Return text cut to a number of bytes, at the end of a character."""
    data = text.encode()
    return (
        text if len(data) <= most_bytes else data[: most_bytes - 4].decode("utf-8", "ignore") + "…"
    )


def pattern_fault(value: object) -> str:
    """Return why a router cannot run a pattern of a schema; empty if it can, or is no text."""
    options = jsonschema_rs.RegexOptions()
    try:
        jsonschema_rs.Draft202012Validator({"pattern": value}, pattern_options=options)
    except ValueError:
        if jsonschema_rs.is_valid({"format": "regex"}, value, validate_formats=True):
            return "a router cannot run this pattern in linear time"
        return "it is no regular expression of JSON Schema"
    return ""
