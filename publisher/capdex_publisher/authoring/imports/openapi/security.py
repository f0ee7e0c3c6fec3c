"""What an operation needs to authenticate, as named secrets of a binding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from capdex.json import Json, list_of, object_of
from capdex.manifest.bindings.http_auth import MAX_AUTHS, is_secret_name
from capdex.manifest.bindings.http_header import header_fault
from capdex_publisher.authoring.imports.openapi import swagger
from capdex_publisher.authoring.imports.openapi.document import ApiDocument, Operation, Unsendable
from capdex_publisher.authoring.imports.report import DOCUMENT, Note, written


def secrets(document: ApiDocument, operation: Operation) -> list[Json]:
    """Return the first alternative of `security` that a binding can carry.

    Raises Unsendable if there is none, and none is no alternative.
    """
    security = operation.value.get("security", document.value.get("security"))
    alternatives = [] if security is None else security
    if not isinstance(alternatives, list) or not all(isinstance(x, dict) for x in alternatives):
        raise Unsendable("security", "it is no list of alternatives", written(security)[:80])
    if security == [] and (usual := document.value.get("security")):
        why = "the operation says that it needs none"
        operation.note("security", "left out", written(usual), why)
    needed = [x for x in alternatives if x]
    optional = len(needed) < len(alternatives)
    chosen: list[Json] | None = None
    for i, alternative in enumerate(needed):
        name = "security " + " and ".join(map(str, alternative))
        if chosen is not None:
            operation.note(name, "left out", "an alternative", "a tool authenticates in one way")
            continue
        try:
            chosen = _together(document, operation, alternative)
        except Unsendable as fault:
            if not optional and i == len(needed) - 1:
                raise Unsendable(name, fault.why, fault.before) from None
            operation.note(name, "left out", fault.before, fault.why)
    return [{**x, "optional": True} if optional else x for x in chosen or []]


def secret_name(text: str, others: Sequence[Json]) -> str:
    """Return the name of a secret made of a text, and that of none of the others."""
    words = "_".join(re.findall(r"[A-Z0-9]+", text.upper()))[:48].strip("_")
    name = words if words[:1].isalpha() else f"API_{words}".strip("_")
    name = name if is_secret_name(name) else "API_SECRET"
    return f"{name}_{len(others) + 1}" if name in [x["secret"] for x in others] else name


def carrier(auth: Json) -> tuple[str, str]:
    """Return where a secret is sent: the place, and the name there in lower case."""
    place = auth["type"] if auth["type"] in ("query", "cookie") else "header"
    return place, auth.get("name", "Authorization").lower()


def check_together(auths: list[Json]) -> None:
    """Raise Unsendable for secrets that no binding sends together."""
    if len(auths) > MAX_AUTHS:
        raise Unsendable("security", f"a binding has at most {MAX_AUTHS} secrets")
    if len({carrier(x) for x in auths}) < len(auths):
        raise Unsendable("security", "two secrets would be sent in one place")


def _together(document: ApiDocument, operation: Operation, requirement: Json) -> list[Json]:
    components = object_of(document.value.get("components"))
    listed = components.get("securitySchemes")
    if document.is_swagger:
        listed = document.value.get("securityDefinitions")
    made: list[Json] = []
    for name, scopes in requirement.items():
        # OpenAPI 3.2: a name or a URI
        declared = document.target(object_of(listed).get(name, {"$ref": name}))
        if not isinstance(declared, dict):
            raise Unsendable("security", "the document does not describe it", name)
        scheme = swagger.security_scheme(declared) if document.is_swagger else declared
        auth = _auth(scheme, list_of(scopes), operation, name)
        if auth == {"type": "bearer"} and auth in [{"type": x["type"]} for x in made]:
            continue  # two ways to one token
        own = secret_name(name.rpartition("/")[2], made)
        made.append({**auth, "secret": own})
        if told := declared.get("description"):
            why = "tell how it is written to those who set it"
            operation.notes.append(Note(DOCUMENT, f"secret {own}", "left out", str(told), why))
    check_together(made)
    return made


def _auth(scheme: Json, scopes: list[Any], operation: Operation, name: str) -> Json:
    type_, kind = scheme.get("type"), str(scheme.get("scheme", "")).lower()
    if type_ == "http" and kind in ("bearer", "basic"):
        return {"type": kind}
    place, sent = scheme.get("in"), scheme.get("name")
    if type_ == "apiKey" and place in ("header", "query", "cookie") and isinstance(sent, str):
        if (how := scheme.get("x-amazon-apigateway-authtype")) == "awsSigv4":
            raise Unsendable("security", "each request needs a signature of its own", how)
        fault = header_fault(sent) if place == "header" else None
        if fault and sent.lower() != "authorization":
            raise Unsendable("security", fault, name)
        return {"type": place, "name": sent}
    if type_ not in ("oauth2", "openIdConnect"):
        raise Unsendable("security", "a binding cannot authenticate so", f"{type_} {kind}".strip())
    flows = object_of(scheme.get("flows"))
    how = " ".join([str(type_), *flows, *(["for", *map(str, scopes)] if scopes else [])])
    operation.note(f"security {name}", "changed", how, "a bearer token that is bound as a secret")
    return {"type": "bearer"}
