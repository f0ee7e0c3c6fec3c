"""The parties that bindings contact, and the secrets that they send (P2, P10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from capdex.diagnostics import walk
from capdex.errors import quoted
from capdex.manifest.bindings.http_auth import auths
from capdex.manifest.bindings.http_header import HEADER_NAME
from capdex.manifest.bindings.http_request import HTTP_TYPES

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\s]*@)?([^/?#\s]*)")
_ROOT = re.compile(r"\.(?=:|$)")  # `example.com.` is the same host
_PORT = re.compile(r":[0-9]+$", re.ASCII)
_ANY_DID = re.compile(r"did:[^/?#\s]+")
_ANY_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_CARRIERS = {"bearer": "Authorization: Bearer", "basic": "Authorization: Basic"}


class SecretUse(NamedTuple):
    """A secret that a package asks for: its name, the host that gets it, and its place there.

    A secret is bound to a host, whatever the port. `carrier` is `Authorization: Bearer`,
    `Authorization: Basic`, the name of another header, or `query NAME` or `cookie NAME`.
    """

    secret: str
    host: str
    carrier: str


def contacts(bindings: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the hosts and agents that bindings contact, each with the first tool to do so.

    Hosts are in lower case, with a port unless it is that of https; agents and services are DIDs;
    a `{placeholder}` alone stands for the party that the argument names. Every text of a binding
    counts, so that an unknown type hides nothing; but what an HTTP binding sends is not a party.
    """
    parties: dict[str, str] = {}
    for tool, binding in bindings.items():
        sent = HTTP_TYPES.get(str(binding.get("type")), ())
        for _, text in walk({key: value for key, value in binding.items() if key not in sent}):
            for contact in _contacts(text.strip()) if isinstance(text, str) else ():
                parties.setdefault(contact, tool)
    return parties


def party(contact: str) -> str:
    """Return a contact as a reader sees it: a `{placeholder}` says that each call names another."""
    alone = _ANY_PLACEHOLDER.fullmatch(contact)
    return f"whichever party a call names ({contact})" if alone else contact


def secret_uses(bindings: Mapping[str, Mapping[str, Any]]) -> dict[SecretUse, str]:
    """Return the secrets that bindings send, each with the first tool to do so.

    Only HTTP bindings send any, and only if `auth` is what a manifest may have.
    """
    uses: dict[SecretUse, str] = {}
    for tool, binding in bindings.items():
        for auth in auths(binding) if binding.get("type") in HTTP_TYPES else ():
            if isinstance(auth.get("secret"), str):
                host = next(iter(_contacts(str(binding.get("url")).strip())), "")
                use = SecretUse(auth["secret"], _PORT.sub("", host), _carrier(auth))
                uses.setdefault(use, tool)
    return uses


def carried_secrets(binding: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return the secrets of an HTTP binding, each with its place in a request."""
    return tuple(
        (str(x.get("secret")), _carrier(x) + ", if it is bound" * (x.get("optional") is True))
        for x in auths(binding)
    )


def _carrier(auth: Mapping[str, Any]) -> str:
    kind, name = str(auth.get("type")), str(auth.get("name"))
    if kind == "query" and not HEADER_NAME.fullmatch(name):  # any text, which is not a reader's own
        name = quoted(name)
    return _CARRIERS.get(kind) or (f"{kind} {name}" if kind in ("query", "cookie") else name)


def _contacts(text: str) -> list[str]:
    if _ANY_PLACEHOLDER.fullmatch(text):
        return [text]
    whole = _URL.match(text)  # what stands in its path and query is not contacted by itself
    hosts = [whole[1]] if whole else _URL.findall(text)
    plain = [_ROOT.sub("", host.lower().removesuffix(":443")) for host in hosts]
    return [*filter(None, plain), *([] if whole else _ANY_DID.findall(text))]
