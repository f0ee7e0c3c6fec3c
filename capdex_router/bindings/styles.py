"""A value as text in a path, a query, a header or a form, in a style (P10). Pure.

The styles are those of OpenAPI 3.1, 4.8.12.3 ("Style Values"), which follow RFC 6570. A list or an
object in another one is JSON text, since the styles have no form for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple
from urllib.parse import quote, quote_plus

import orjson

from capdex.errors import InvalidInput

Quote = Callable[[str], str]
PLAIN: Final = "give plain text, and integers below 2^64"
_NO_TEXT: Final = "it holds control characters, or what is not Unicode text"
_DELIMITERS: Final = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}


class ArgumentPlace(NamedTuple):
    """Where an argument goes, its name there, and how a list or an object is written.

    Without a style they have the form of `http_get`: a list is repeated in a query, an object is
    JSON text in it, and neither fits into a path or a header. `as_json`: any value is JSON text.
    """

    place: str
    name: str
    style: str = ""
    explode: bool = False
    as_json: bool = False


def in_url(text: str) -> str:
    """Return a text percent-encoded for a path or a query: unreserved characters stay."""
    return quote(text, safe="")


def in_form(text: str) -> str:
    """Return a text as in a form: `+` for a space (application/x-www-form-urlencoded)."""
    return quote_plus(text, safe="*").replace("~", "%7E")


def named_texts(
    parameter: str, value: object, place: ArgumentPlace, escape: Quote
) -> Iterator[tuple[str, str]]:
    """Yield the names of an argument in a query or a form, as they are, with its encoded values.

    Nothing for null, an empty list or an empty object. Raises InvalidInput for what is no text.
    """
    if place.as_json or (isinstance(value, dict) and not place.style):
        value = None if value is None else orjson.dumps(value).decode()
    value = _defined(value)
    name, style = place.name or parameter, place.style or "form"
    explode = place.explode or not place.style
    match value:
        case None:
            return
        case dict() if style == "deepObject":
            yield from ((f"{name}[{key}]", escape(_text(name, x))) for key, x in value.items())
        case dict() if explode:
            yield from ((key, escape(_text(name, item))) for key, item in value.items())
        case list() if explode or style == "deepObject":
            yield from ((name, escape(_text(name, item))) for item in value)
        case dict() | list():
            if value:
                yield name, _DELIMITERS[style].join(_items(name, value, escape))
        case _:
            yield name, escape(_text(name, value))


def path_text(parameter: str, name: str, value: object, style: str, explode: bool) -> str:
    """Return a value of a path, encoded; raises InvalidInput if it is empty or no text."""
    value = _defined(value)
    if value is None or value == [] or value == {}:
        raise unsendable(parameter, "it is missing, and the URL needs it", "give it")
    before, between = {"simple": ("", ","), "label": (".", "."), "matrix": (";", ";")}[style]
    key = f"{name}=" if style == "matrix" else ""
    if isinstance(value, dict | list) and not explode:
        return f"{before}{key}{','.join(_items(parameter, value, in_url))}"
    if isinstance(value, dict):
        shown = (f"{in_url(x)}={in_url(_line_of(parameter, y))}" for x, y in value.items())
    else:
        listed = value if isinstance(value, list) else [value]
        shown = (f"{key}{in_url(_line_of(parameter, x))}" for x in listed)
        if style == "matrix":  # RFC 6570, 3.2.7: no `=` before an empty value
            shown = (x.removesuffix("=") for x in shown)
    return before + between.join(shown)


def header_value(parameter: str, value: object, place: ArgumentPlace) -> str:
    """Return the value of an argument's header; raises InvalidInput for what is no line of text."""
    if place.as_json:
        return json_text(value)
    value = _defined(value) if place.style else scalar(parameter, value)
    if isinstance(value, list):
        return ",".join(_line_of(parameter, item) for item in value)
    if not isinstance(value, dict):
        return _line_of(parameter, value)
    mark = "=" if place.explode else ","
    return ",".join(
        f"{_line_of(parameter, key)}{mark}{_line_of(parameter, item)}"
        for key, item in value.items()
    )


def scalar(parameter: str, value: object) -> Any:
    """Return a value of a path or a header; raises InvalidInput for a list or an object."""
    if isinstance(value, dict | list):
        why = "a list or an object does not fit into a URL or a header"
        raise unsendable(parameter, why, "give one value")
    return value


def _defined(value: object) -> Any:
    """Return a value without the members that are null, which RFC 6570, 2.3, calls undefined."""
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if item is not None}
    return [item for item in value if item is not None] if isinstance(value, list) else value


def json_text(value: object) -> str:
    """Return a value as JSON in ASCII."""
    return json.dumps(value, separators=(",", ":"))


def _line_of(parameter: str, value: object) -> str:
    """Return a value as text without control characters, which servers and logs misread."""
    text = _text(parameter, value)
    if all(char >= " " and char != "\x7f" for char in text):
        return text
    raise unsendable(parameter, _NO_TEXT)


def _items(parameter: str, value: Any, escape: Quote) -> list[str]:
    listed = [part for pair in value.items() for part in pair] if isinstance(value, dict) else value
    return [escape(_text(parameter, item)) for item in listed]


def _text(parameter: str, value: object) -> str:
    match value:
        case str():
            if "\x00" not in value and not any("\ud800" <= char <= "\udfff" for char in value):
                return value  # line ends belong to long texts
            raise unsendable(parameter, _NO_TEXT)
        case bool():
            return "true" if value else "false"
        case _:
            return orjson.dumps(value).decode()


def unsendable(parameter: str, why: str, fix: str = PLAIN) -> InvalidInput:
    """Return the error for an argument that has no form where it goes."""
    return InvalidInput(f"the argument {parameter[:64]} cannot be sent", why=why, fix=fix)
