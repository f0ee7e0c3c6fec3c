"""Operations of an OpenAPI 3.0 or 3.1 document as tools, bound by `http_get` and `http_post`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin

from capdex.errors import InvalidInput, UsageError
from capdex.manifest.bindings.http_request import header_fault
from publisher.authoring.imports.draft import Draft, DraftTool, Json
from publisher.authoring.imports.report import DOCUMENT, Fate, Note
from publisher.authoring.imports.schemas import Resolver, TooLarge, object_of
from publisher.authoring.imports.source import parse
from publisher.authoring.imports.text import clean, name_of, tool_name_of
from publisher.authoring.scaffold import placeholder_url

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
MAX_OPERATIONS: Final = 10_000  # that are looked at
MAX_NAMED: Final = 40  # operations in an error
_TYPES: Final = {"get": "http_get", "post": "http_post"}
_JSON: Final = re.compile(r"application/(?:[\w.+-]+\+)?json\b")
_PLACEHOLDER: Final = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a document: `id` is its operationId, else its method and path.

    A path that another file describes is one operation without a method.
    """

    id: str
    method: str
    path: str
    value: Json
    shared: list[Any] = field(default_factory=list)  # parameters of all operations of the path

    @property
    def names(self) -> tuple[str, str]:
        """What `--operation` may call it."""
        return self.id, f"{self.method.upper()} {self.path}"


def import_openapi(data: bytes, name: str, operations: Sequence[str], *, base: str = "") -> Draft:
    """Return the draft of some operations of a document; `base` is the URL that it came from.

    `operations` are operationIds, or a method with a path such as `GET /pets`. Raises UsageError
    if one is not there, or if none is named and the document has several; InvalidInput for what is
    not an OpenAPI 3 document.
    """
    document = parse(data, name)
    if not isinstance(document, dict) or not str(document.get("openapi", "")).startswith("3."):
        old = isinstance(document, dict) and "swagger" in document
        raise InvalidInput(
            f"{name} is not an OpenAPI 3 document",
            why="it is of Swagger 2.0" if old else "it has no line openapi: 3.…",
            fix="convert it to OpenAPI 3" if old else "give an OpenAPI document in JSON or YAML",
        )
    chosen = _chosen(list(_operations(document)), operations)
    server = _server(document, base)
    notes: list[Note] = []
    tools: list[DraftTool] = []
    for one in chosen:
        tool, lost = _tool(document, one, server, [x.name for x in tools])
        notes += lost
        if tool is not None:
            tools.append(tool)
    if not tools:
        raise InvalidInput(
            "none of these operations can be a tool",
            why="; ".join(map(str, notes)),
            fix="choose what is called by GET, or by POST with a JSON object; "
            "bundle a document of several files into one file first",
        )
    given = document.get("info")
    info: Json = given if isinstance(given, dict) else {}
    title = clean(info.get("title")) or name
    license_ = info.get("license")
    spdx = clean(license_.get("identifier")) if isinstance(license_, dict) else ""
    description = clean(info.get("summary") or info.get("description")).partition("\n\n")[0]
    own = name_of(title) or name_of(name) or "my-api"
    why = "an output_schema may say what a tool gives"
    notes.append(Note(DOCUMENT, "replies", "left out", "", why))
    return Draft(own, title, description, license=spdx, tools=tools, notes=notes)


def _operations(document: Json) -> Iterator[Operation]:
    paths = document.get("paths")
    resolver, count = Resolver(document), 0
    for path, named in paths.items() if isinstance(paths, dict) else ():
        item = resolver.target(named)
        if not isinstance(item, dict):
            if resolver.cut:
                yield Operation(clean(path), "", str(path), named)
                resolver.cut.clear()
            continue
        shared = item.get("parameters")
        for method in METHODS:
            value = item.get(method)
            if not isinstance(value, dict):
                continue
            count += 1
            if count > MAX_OPERATIONS:
                return
            id_ = value.get("operationId")
            named = id_ if isinstance(id_, str) and id_ else f"{method.upper()} {path}"
            listed = shared if isinstance(shared, list) else []
            yield Operation(clean(named), method, str(path), value, listed)


def _chosen(found: Sequence[Operation], wanted: Sequence[str]) -> list[Operation]:
    names = [x.id for x in found]
    listed = ", ".join(names[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")
    if not found:
        raise InvalidInput("the document has no operations", fix="give one that has paths")
    if not wanted:
        if len(found) == 1:
            return list(found)
        raise UsageError(
            "name the operations to import",
            why=f"the document has {len(found)}: {listed}",
            fix=f"--operation {found[0].id!r}, once for each",
        )
    chosen = []
    for want in wanted:
        match = [x for x in found if want in x.names]
        if not match:
            raise UsageError(f"the document has no operation {want!r}", why=f"it has {listed}")
        if match[0] not in chosen:
            chosen.append(match[0])
    return chosen


def _server(document: Json, base: str) -> str:
    """Return the address of the first server, without a slash at its end."""
    servers = document.get("servers")
    first = servers[0] if isinstance(servers, list) and servers else {}
    url = str(first.get("url") or "") if isinstance(first, dict) else ""
    variables = first.get("variables") if isinstance(first, dict) else {}
    for key, variable in variables.items() if isinstance(variables, dict) else ():
        if isinstance(variable, dict):
            url = url.replace(f"{{{key}}}", str(variable.get("default", "")))
    if base and not url.startswith(("http://", "https://")):
        url = urljoin(base, url or "/")
    if not url.startswith("https://"):
        return placeholder_url("v1")
    return url.rstrip("/")


def _tool(
    document: Json, operation: Operation, server: str, taken: Sequence[str]
) -> tuple[DraftTool | None, list[Note]]:
    source = operation.id
    if isinstance(elsewhere := operation.value.get("$ref"), str):
        return None, [Note(source, "operation", "refused", elsewhere, "it is in another file")]
    if operation.method not in _TYPES:
        why = f"a package cannot send {operation.method.upper()}"
        return None, [Note(source, "operation", "refused", "", why)]
    reader = _Arguments(document, operation)
    try:
        reader.read_parameters()
        if fault := reader.read_body():
            return None, [Note(source, "operation", "refused", "", f"it needs {fault}")]
    except TooLarge:
        return None, [Note(source, "operation", "refused", "", "its schemas are too large")]
    url = server + reader.path()
    binding: Json = {"type": _TYPES[operation.method], "url": url}
    if reader.mapping:
        binding["parameters"] = reader.mapping
    if auth := reader.auth():
        binding["auth"] = auth
    value = operation.value
    text = clean(value.get("description") or value.get("summary") or "")
    parameters: Json = {"type": "object", "properties": reader.properties}
    if reader.required:
        parameters["required"] = reader.required
    name = tool_name_of(source, taken)
    notes = [Note(source, *x) for x in reader.left_out]
    if reader.resolver.cut:
        refs = ", ".join(dict.fromkeys(map(clean, reader.resolver.cut)))
        notes.append(
            Note(source, "reference", "left out", refs, "it is missing, or leads to itself")
        )
    return DraftTool(name, source, text, parameters, binding), notes


class _Arguments:
    """The arguments of an operation: their schemas, and where each is sent."""

    def __init__(self, document: Json, operation: Operation) -> None:
        self._document = document
        self._operation = operation
        self._in_path: dict[str, str] = {}  # names in the path, and the parameters of the tool
        self.resolver = Resolver(document)
        self.properties: Json = {}
        self.required: list[str] = []
        self.mapping: Json = {}
        self.left_out: list[tuple[str, Fate, str, str]] = []

    def read_parameters(self) -> None:
        """Read the parameters of path, query and header; raises TooLarge."""
        own = self._operation.value.get("parameters")
        merged: dict[tuple[str, str], Json] = {}
        for item in [*self._operation.shared, *(own if isinstance(own, list) else [])]:
            found = self.resolver.target(item)
            if isinstance(found, dict) and isinstance(found.get("name"), str):
                merged[str(found.get("in")), found["name"]] = found
        for (place, name), item in merged.items():
            self._add_parameter(place, name, item)

    def read_body(self) -> str:
        """Read the request's body; return what a tool cannot send but must. Raises TooLarge."""
        given = self._operation.value.get("requestBody")
        body = self.resolver.target(given)
        if not isinstance(body, dict):
            missing = clean(given.get("$ref")) if isinstance(given, dict) else ""
            return f"what {missing} describes" if missing else ""
        content = body.get("content")
        kinds = content.items() if isinstance(content, dict) else ()
        found = [x for key, x in kinds if _JSON.match(str(key)) and isinstance(x, dict)]
        made = object_of(self.resolver.schema(found[0].get("schema"))) if found else None
        if made is None or self._operation.method == "get":
            fault = "a body that is not a JSON object" if made is None else "a body in a GET"
            if body.get("required") is True:
                return fault
            self.left_out.append(("body", "left out", "", f"it is {fault}"))
            return ""
        for name, value in made.properties.items():
            if isinstance(value, dict) and value.get("readOnly") is True:
                continue  # the service sets it
            key = self._key(name, "body")
            self.properties[key] = value
            if key != name:
                self.mapping[key] = {"in": "body", "name": name}
            if name in made.required:
                self.required.append(key)
        if made.choice:
            self.left_out.append(("body", "left out", "alternatives", "each argument is by itself"))
        return ""

    def path(self) -> str:
        """Return the path, with the tool's names of its placeholders."""
        return _PLACEHOLDER.sub(
            lambda match: "{" + self._in_path.get(match[1], match[1]) + "}", self._operation.path
        )

    def auth(self) -> Json | None:
        """Return the first way to authenticate that a package can name."""
        security = self._operation.value.get("security", self._document.get("security"))
        schemes = self.resolver.find("#/components/securitySchemes")
        listed = security if isinstance(security, list) else []
        names = [x for one in listed if isinstance(one, dict) for x in one]
        for name in names:
            scheme = self.resolver.target(schemes.get(name)) if isinstance(schemes, dict) else None
            if not isinstance(scheme, dict):
                continue
            made = _auth(scheme, name)
            if made is not None:
                return made
            self.left_out.append((f"security {name}", "left out", "", "a binding cannot carry it"))
        return None

    def _add_parameter(self, place: str, name: str, item: Json) -> None:
        if place == "cookie" or (place == "header" and header_fault(name)):
            self.left_out.append((f"{place} {name}", "left out", "", "a binding cannot send it"))
            return
        if place not in ("path", "query", "header"):
            return
        schema = item.get("schema")
        if schema is None and isinstance(item.get("content"), dict):
            self.left_out.append((f"parameter {name}", "left out", "", "it is JSON in one text"))
            return
        made = self.resolver.schema(schema or {})
        if "description" not in made and item.get("description"):
            made["description"] = clean(item["description"])
        key = self._key(name, place)
        self.properties[key] = made
        if item.get("required") is True or place == "path":
            self.required.append(key)
        default = "query" if self._operation.method == "get" else "body"
        if place == "path":
            self._in_path[name] = key
        elif key != name or place != default:
            self.mapping[key] = {"in": place, "name": name}

    def _key(self, name: str, place: str) -> str:
        """Return a name for a parameter of the tool that none has yet."""
        key = re.sub(r"[^A-Za-z0-9_.-]+", "_", name).strip("_")[:60] or place
        while key in self.properties:
            key = f"{key}_{place}"[:64] if not key.endswith(place) else f"{key}_"
        return key


def _auth(scheme: Json, name: str) -> Json | None:
    secret = "_".join(re.findall(r"[A-Z0-9]+", name.upper()))[:48].strip("_")
    secret = secret if secret[:1].isalpha() else f"API_{secret}".strip("_")
    type_, kind = scheme.get("type"), str(scheme.get("scheme", "")).lower()
    if type_ == "http" and kind in ("bearer", "basic"):
        return {"type": kind, "secret": secret}
    if type_ in ("oauth2", "openIdConnect"):
        return {"type": "bearer", "secret": secret}
    if type_ == "apiKey" and scheme.get("in") == "header" and isinstance(scheme.get("name"), str):
        return {"type": "header", "name": scheme["name"], "secret": secret}
    return None
