"""Query strings, read strictly: known parameters in UTF-8, each once unless it is a list."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl

from capdex.errors import InvalidInput
from capdex.json_schema.arguments import came, one_of

MAX_PARAMETERS: Final = 80  # 64 values of filters, and what else a search takes
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,14}", re.ASCII)

Parameters = Mapping[str, str]


def pairs(query: bytes) -> list[tuple[str, str]]:
    """Return the names and values of a query string; raises InvalidInput for other than UTF-8."""
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except ValueError as error:
        what, why = "the query string cannot be read", str(error)[:200]
        raise InvalidInput(what, why=why, fix="encode it as UTF-8, in percents") from None


def read_parameters(
    query: bytes, known: Collection[str], repeated: Collection[str] = ()
) -> dict[str, str]:
    """Return the parameters of a query string.

    Values of those in `repeated` are joined for `several`, which takes them apart. Raises
    InvalidInput for an unknown parameter, another one given twice, NUL, or anything but UTF-8.
    """
    parameters: dict[str, str] = {}
    for name, value in pairs(query):
        if name not in known:
            near = difflib.get_close_matches(name[:64], known, n=1)
            fix = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise InvalidInput(f"there is no parameter {name[:64]!r}", fix=fix)
        if "\0" in value:
            raise InvalidInput(f"{name} has a NUL character", fix="leave it out")
        if name not in parameters:
            parameters[name] = value
        elif name in repeated:
            parameters[name] += f"\0{value}"
        else:
            raise InvalidInput(f"{name} is given twice", fix="give it once")
    return parameters


def required(given: Parameters, name: str) -> str:
    """Return a parameter that must be there and not empty; raises InvalidInput."""
    if not given.get(name):
        raise InvalidInput(f"{name} is missing", fix=f"add ?{name}=…")
    return given[name]


def words(given: Parameters, name: str) -> list[str]:
    """Return the items of a repeated parameter, which may have several separated by commas."""
    return [word for value in several(given, name) for word in value.split(",")]


def several(given: Parameters, name: str) -> list[str]:
    """Return the values of a repeated parameter; none for an absent one."""
    return given[name].split("\0") if name in given else []


def number(given: Parameters, name: str, default: int) -> int:
    """Return a parameter as a whole number; raises InvalidInput."""
    if not _NUMBER.fullmatch(text := given.get(name, str(default))):
        what, fix = f"{name} is not a whole number", "give one, or leave it out"
        raise InvalidInput(what, why=came(text), fix=fix)
    return int(text)


def choice(given: Parameters, name: str, choices: Sequence[str], default: str) -> str:
    """Return a parameter that is one of a few words; raises InvalidInput."""
    return one_of(name, given.get(name, default), choices)
