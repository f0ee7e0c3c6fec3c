"""Operations as tools, and the report of what of them a tool does not carry as it stands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from capdex.errors import InvalidInput
from capdex.json import Json, object_of
from capdex.manifest.bindings.http_auth import AUTH_TYPES
from capdex.manifest.bindings.http_request import JSON
from capdex.manifest.urls import has_dots
from capdex_publisher.authoring.imports.draft import Draft, DraftTool
from capdex_publisher.authoring.imports.openapi.arguments import Arguments
from capdex_publisher.authoring.imports.openapi.document import ApiDocument, Operation, Unsendable
from capdex_publisher.authoring.imports.openapi.security import secrets
from capdex_publisher.authoring.imports.report import DOCUMENT, Note, clean, name_of
from capdex_publisher.authoring.imports.schemas import TooLarge

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")
_ENDS: Final = tuple(".!?:;…。！？")  # of a sentence
_NO_CALLS: Final = "a package receives no calls"


def import_openapi(data: bytes, name: str, operations: Sequence[str], *, base: str = "") -> Draft:
    """Return the draft of some operations of a document; `base` is the URL that it came from.

    `operations` are operationIds, or a method with a path such as `GET /pets`. Raises UsageError
    if one is not there, or if none is named and the document has several; InvalidInput for what is
    not an OpenAPI 3 or Swagger 2.0 document.
    """
    return import_operations(ApiDocument(data, name, base), name, operations)


def import_operations(document: ApiDocument, name: str, operations: Sequence[str]) -> Draft:
    """Return the draft of some operations of a document that was read; raises as above."""
    notes: list[Note] = [*document.notes]
    tools: list[DraftTool] = []
    edits: list[str] = []
    for operation in document.chosen(operations):
        try:
            tool, to_edit = _tool(document, operation)
        except Unsendable as fault:
            operation.note(fault.subject, "refused", fault.before, fault.why)
        except TooLarge as fault:
            operation.note("schemas", "refused", str(fault), "they are too large for a package")
        else:
            tools.append(tool)
            edits += to_edit
        notes += operation.notes
    if not tools:
        raise InvalidInput(
            "none of these operations can be a tool",
            why="; ".join(str(x) for x in notes if x.fate == "refused"),
            fix="choose others; bundle a document of several files into one file first",
        )
    info = object_of(document.value.get("info"))
    title = clean(info.get("title")) or name
    terms = object_of(info.get("license"))
    words = [terms.get("identifier"), terms.get("name")]
    description = clean(info.get("summary") or info.get("description")).partition("\n\n")[0]
    own = name_of(title) or name_of(name) or "my-api"
    if own != "-".join(title.lower().split()):
        notes.append(Note(DOCUMENT, "name", "changed", title, own))
    why = "an output_schema may say what a tool gives"
    notes.append(Note(DOCUMENT, "replies", "left out", "", why))
    if webhooks := ", ".join(object_of(document.value.get("webhooks"))):
        notes.append(Note(DOCUMENT, "webhooks", "left out", webhooks, _NO_CALLS))
    return Draft(
        own,
        title,
        description,
        license=next(filter(None, map(clean, words)), ""),
        tools=tools,
        notes=notes,
        to_edit=tuple(dict.fromkeys(edits)),
    )


def _tool(document: ApiDocument, operation: Operation) -> tuple[DraftTool, list[str]]:
    value = operation.value
    if isinstance(elsewhere := value.get("$ref"), str):
        raise Unsendable("operation", "it is in another file", elsewhere)
    if operation.method not in _METHODS:
        raise Unsendable("operation", f"a package cannot send {operation.method.upper()}")
    arguments = Arguments(document, operation, secrets(document, operation))
    url, edits = document.address(operation)
    path, hash_, fragment = operation.path.partition("#")
    if path and not path.startswith("/"):
        raise Unsendable("path", "it does not begin with a slash", path)
    if has_dots(f"{url}{path}".partition("?")[0]):
        raise Unsendable("path", "a part of it is one dot or two", f"{url}{path}")
    if hash_:
        operation.note("path", "changed", f"#{fragment}", "a fragment is never sent")
    if unknown := set(_PLACEHOLDER.findall(path)) - arguments.in_path.keys():
        names = ", ".join(sorted(unknown))
        raise Unsendable("path", "the document describes no parameter of this name", names)
    path = _PLACEHOLDER.sub(lambda match: f"{{{arguments.in_path[match[1]]}}}", path)
    if callbacks := ", ".join(object_of(value.get("callbacks"))):
        operation.note("callbacks", "left out", callbacks, _NO_CALLS)
    given = [value.get(x) or operation.item.get(x) for x in ("summary", "description")]
    heading, body = (str(x or "").strip() for x in given)
    # A reader may show both on one line.
    ended = heading if not body or heading.endswith(_ENDS) else f"{heading}."
    text = body if heading in body else "\n\n".join(filter(None, (ended, body)))
    if value.get("deprecated") is True:
        text = f"Deprecated. {text}"
    binding = _binding(operation.method, f"{url}{path}", arguments)
    return DraftTool(operation.id, text, arguments.schema(), binding), edits


def _binding(method: str, url: str, arguments: Arguments) -> Json:
    """Return the binding: `http_get` or `http_post` where their words say all, else `http`."""
    auth, body = arguments.secrets, arguments.body
    rules = {"parameters": arguments.rules} if arguments.rules else {}
    usual = body is None or body == {"content": JSON}
    first_auth = {"auth": auth[0]} if auth else {}
    usual_auth = [x for x in auth if x["type"] in AUTH_TYPES and "optional" not in x]
    plain = arguments.plain and len(auth) < 2 and auth == usual_auth
    if plain and method == "get":
        return {"type": "http_get", "url": url, **rules, **first_auth}
    if plain and method == "post" and body is not None:
        headers = {} if usual else {"headers": {"Content-Type": body["content"]}}
        return {"type": "http_post", "url": url, **rules, **headers, **first_auth}
    made: Json = {"type": "http", "method": method.upper(), "url": url, **rules}
    if body is not None:
        made["body"] = {key: x for key, x in body.items() if x != JSON} or body
    return made | ({"auth": auth} if auth else {})
