"""Swagger 2.0 in the words of OpenAPI 3, an operation at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from capdex.json import Json, list_of

FORM: Final = "application/x-www-form-urlencoded"
_MULTIPART: Final = "multipart/form-data"
_ABOUT: Final = ("name", "in", "required", "description", "allowEmptyValue")  # not of the value
_STYLES: Final[dict[str, Json]] = {
    "csv": {"explode": False},
    "ssv": {"style": "spaceDelimited", "explode": False},
    "pipes": {"style": "pipeDelimited", "explode": False},
    "multi": {"style": "form", "explode": True},
}
_FLOWS: Final = {"application": "clientCredentials", "accessCode": "authorizationCode"}


def servers(document: Json, operation: Json, base: str) -> list[Json]:
    """Return `schemes`, `host` and `basePath` as servers (Swagger 2.0, Swagger Object).

    The schemes of an operation are before those of the document.
    """
    host, path = document.get("host"), str(document.get("basePath") or "/")
    if not host:
        return [{"url": path}]
    schemes = operation.get("schemes") or document.get("schemes")
    schemes = schemes or [urlsplit(base).scheme or "https"]
    return [{"url": f"{scheme}://{host}/{path.lstrip('/')}"} for scheme in list_of(schemes)]


def parameter(value: Json) -> Json:
    """Return a parameter of path, query or header as one of OpenAPI 3."""
    about = _some(value, _ABOUT)
    schema = {key: item for key, item in value.items() if key not in _ABOUT}
    if value.get("type") != "array":
        return {**about, "schema": schema}
    style = str(value.get("collectionFormat", "csv"))
    return {**about, "schema": schema, **_STYLES.get(style, {"style": style})}


def body(document: Json, operation: Json, parameters: Sequence[Json]) -> Json | None:
    """Return the parameters in `body` and `formData` as a request body; None without any."""
    kinds = list(map(str, list_of(operation.get("consumes", document.get("consumes")))))
    whole = next((x for x in parameters if x.get("in") == "body"), None)
    if whole is not None:
        content = {kind: {"schema": whole.get("schema")} for kind in kinds or ["application/json"]}
        return {**_some(whole, ("required", "description")), "content": content}
    fields = {x["name"]: parameter(x) for x in parameters if x.get("in") == "formData"}
    if not fields:
        return None
    needed = [name for name, x in fields.items() if x.get("required") is True]
    file = any(x["schema"].get("type") == "file" for x in fields.values())
    kind = _MULTIPART if file or (_MULTIPART in kinds and FORM not in kinds) else FORM
    properties = {name: x["schema"] | _some(x, ("description",)) for name, x in fields.items()}
    schema = {"type": "object", "properties": properties, "required": needed}
    encoding = {name: _some(x, ("style", "explode")) for name, x in fields.items()}
    return {
        "required": bool(needed),
        "content": {kind: {"schema": schema, "encoding": encoding}},
    }


def _some(value: Json, words: Sequence[str]) -> Json:
    """Return those of some words that an object has."""
    return {word: value[word] for word in words if word in value}


def security_scheme(value: Json) -> Json:
    """Return a security definition as a security scheme of OpenAPI 3."""
    if value.get("type") == "basic":
        return {"type": "http", "scheme": "basic"}
    if value.get("type") == "oauth2":
        flow = str(value.get("flow"))
        return {"type": "oauth2", "flows": {_FLOWS.get(flow, flow): value}}
    return value
