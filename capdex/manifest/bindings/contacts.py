"""The parties that bindings contact, and the secrets that they send (P2, P10)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from capdex.diagnostics import walk
from capdex.manifest.bindings.http_request import HTTP_TYPES, SENT

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#\s]*@)?([^/?#\s]*)")
_ROOT = re.compile(r"\.(?=:|$)")  # `example.com.` is the same host
_PORT = re.compile(r":[0-9]+$", re.ASCII)
_ANY_DID = re.compile(r"did:[^/?#\s]+")
_ANY_PLACEHOLDER = re.compile(r"\{[^{}]*\}")
_CARRIERS = {"bearer": "Authorization: Bearer", "basic": "Authorization: Basic"}


class SecretUse(NamedTuple):
    """A secret that a package asks for: its name, the host that gets it, and the header it is in.

    A secret is bound to a host, whatever the port. `carrier` is `Authorization: Bearer`,
    `Authorization: Basic`, or the name of another header.
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
    found: dict[str, str] = {}
    for tool, binding in bindings.items():
        sent = SENT if binding.get("type") in HTTP_TYPES else ()
        for _, text in walk({key: value for key, value in binding.items() if key not in sent}):
            for contact in _contacts(text.strip()) if isinstance(text, str) else ():
                found.setdefault(contact, tool)
    return found


def secret_uses(bindings: Mapping[str, Mapping[str, Any]]) -> dict[SecretUse, str]:
    """Return the secrets that bindings send, each with the first tool to do so.

    Only `http_get` and `http_post` send any, and only if `auth` is what a manifest may have.
    """
    found: dict[SecretUse, str] = {}
    for tool, binding in bindings.items():
        auth = binding.get("auth") if binding.get("type") in HTTP_TYPES else None
        if not isinstance(auth, dict) or not isinstance(auth.get("secret"), str):
            continue
        carrier = _CARRIERS.get(str(auth.get("type"))) or str(auth.get("name"))
        host = next(iter(_contacts(str(binding.get("url")).strip())), "")
        found.setdefault(SecretUse(auth["secret"], _PORT.sub("", host), carrier), tool)
    return found


def _contacts(text: str) -> list[str]:
    if _ANY_PLACEHOLDER.fullmatch(text):
        return [text]
    whole = _URL.match(text)  # what stands in its path and query is not contacted by itself
    hosts = [whole[1]] if whole else _URL.findall(text)
    plain = [_ROOT.sub("", host.lower().removesuffix(":443")) for host in hosts]
    return [*filter(None, plain), *([] if whole else _ANY_DID.findall(text))]
