"""Whom a package makes a router contact, read from its bindings (P10)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\s]*@)?([^/?#\s]*)")
_ROOT = re.compile(r"\.(?=:|$)")  # `example.com.` is the same host
_DID = re.compile(r"did:[^/?#\s]+")
_PLACEHOLDER = re.compile(r"\{[^{}]*\}")


def contacts(bindings: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Whom the bindings contact, and the tool that does so first.

    Hosts are in lower case, with a port unless it is that of https; agents and services are DIDs;
    a `{placeholder}` alone stands for whomever that argument names. Every text of a binding
    counts, so that a type nobody knows here hides nothing.
    """
    found: dict[str, str] = {}
    for tool, binding in bindings.items():
        for text in _texts(binding):
            for contact in _contacts(text.strip()):
                found.setdefault(contact, tool)
    return found


def _contacts(text: str) -> list[str]:
    if _PLACEHOLDER.fullmatch(text):
        return [text]
    whole = _URL.match(text)  # what stands in its path and query is not contacted by itself
    hosts = [whole[1]] if whole else _URL.findall(text)
    plain = [_ROOT.sub("", host.lower().removesuffix(":443")) for host in hosts]
    return [*filter(None, plain), *([] if whole else _DID.findall(text))]


def _texts(value: Any) -> Iterator[str]:
    """Every text inside a binding, in order; depth is bounded by the file's."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
