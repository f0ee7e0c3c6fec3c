"""An OpenAPI 3 or Swagger 2.0 document: its operations, and where each is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from capdex.errors import InvalidInput, UsageError
from capdex.json import Json, object_of, objects_in
from capdex.manifest.urls import url_fault
from capdex_publisher.authoring.imports.openapi import swagger
from capdex_publisher.authoring.imports.references import target, write_pointers
from capdex_publisher.authoring.imports.report import DOCUMENT, Fate, Note, clean
from capdex_publisher.authoring.imports.source import parse, utf8
from capdex_publisher.authoring.scaffold import placeholder_url

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_NAMED: Final = 40  # operations in an error
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
_DOUBLED: Final = re.compile(r"\{\{([^{}]*)\}\}")  # as Postman writes a variable
_NAMES: Final = re.compile(
    rb"\$(?:id|self|anchor|dynamicAnchor)\b"
)  # by which parts are referred to
_HTTPS: Final = re.compile("https:", re.IGNORECASE)


class Unsendable(Exception):
    """An operation cannot be a tool, because of a word that no tool can carry."""

    def __init__(self, subject: str, why: str, before: str = "") -> None:
        super().__init__(subject, why, before)
        self.subject, self.why, self.before = subject, why, before


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a document: `id` is its operationId, else its method and path.

    A path that another file describes is one operation without a method. `notes` is what was said
    of it.
    """

    id: str
    method: str
    path: str
    value: Json
    item: Json = field(default_factory=dict)  # what all operations of the path share
    notes: list[Note] = field(default_factory=list)

    @property
    def names(self) -> tuple[str, str]:
        """What `--operation` may call it."""
        return self.id, f"{self.method.upper()} {self.path}"

    def note(self, subject: str, fate: Fate, before: str, after: str) -> None:
        """Add a row about this operation to the report."""
        self.notes.append(Note(self.id, subject, fate, before, after))


class ApiDocument:
    """A document that was read, and how; `base` is the URL that it came from."""

    def __init__(self, data: bytes, name: str, base: str = "") -> None:
        data, self.notes = utf8(data)
        document = object_of(parse(data, name))
        version = str(document.get("openapi") or "")
        self.is_swagger = not version and str(document.get("swagger")).startswith("2.0")
        if not self.is_swagger and not version.startswith("3."):
            raise InvalidInput(
                f"{name} is not an OpenAPI 3 or Swagger 2.0 document",
                why="it has no line openapi: 3.… and no line swagger: 2.0",
                fix="give an OpenAPI document in JSON or YAML",
            )
        self.value = document
        self.base = _joined(base, str(document.get("$self") or "")) or "/"  # of relative servers
        self.kinds: dict[int, tuple[Json, frozenset[str]]] = {}  # of schemas, by their ids
        self.is_old = self.is_swagger or version.startswith("3.0")  # has schemas of its own dialect
        if not self.is_old and _NAMES.search(data):
            write_pointers(document)

    def target(self, value: object) -> Any:
        """Return a value, or what it refers to in this document: None if that is missing."""
        return target(self.value, value)

    def operations(self) -> Iterator[Operation]:
        """Yield the operations in the order of the document."""
        for path, named in object_of(self.value.get("paths")).items():
            item = self.target(named)
            if not isinstance(item, dict):
                if isinstance(named, dict):
                    yield Operation(clean(path), "", path, named)
                continue
            if item is not named:  # what stands beside a reference to a path adds to it
                item = {**item, **{key: x for key, x in named.items() if key != "$ref"}}
            more = object_of(item.get("additionalOperations"))  # OpenAPI 3.2: by other methods
            for method, value in ({x: item.get(x) for x in METHODS} | more).items():
                if isinstance(value, dict):
                    id_ = value.get("operationId")
                    name = id_ if isinstance(id_, str) and id_ else f"{method.upper()} {path}"
                    yield Operation(clean(name), method, path, value, item)

    def chosen(self, wanted: Sequence[str]) -> list[Operation]:
        """Return the operations of these names; raises UsageError if one is not there."""
        operations = list(self.operations())
        names = [x.id for x in operations]
        listed = ", ".join(names[:MAX_NAMED]) + (", …" if len(names) > MAX_NAMED else "")
        if not operations:
            raise InvalidInput("the document has no operations", fix="give one that has paths")
        if not wanted and len(operations) > 1:
            raise UsageError(
                "name the operations to import",
                why=f"the document has {len(operations)}: {listed}",
                fix=f"--operation {operations[0].id!r}, once for each",
            )
        chosen = operations if not wanted else []
        for want in wanted:
            matches = [x for x in operations if want in (*x.names, f"{x.method} {x.path}")]
            if len(matches) != 1:
                known = [name for x in operations for name in x.names]
                near = [x.names[1] for x in matches] or get_close_matches(want, known, n=1)
                found = f"{len(matches)} operations" if matches else "no operation"
                raise UsageError(
                    f"the document has {found} {want!r}",
                    why=f"they are {', '.join(near)}" if matches else f"it has {listed}",
                    fix=f"--operation {near[0]!r}" if near else "",
                )
            if matches[0] not in chosen:
                chosen.append(matches[0])
        return chosen

    def address(self, operation: Operation) -> tuple[str, list[str]]:
        """Return the address of an operation's server, and what of it the author must edit.

        What no package may call stands at a host to edit.
        """
        level, listed = self._servers(operation)
        first = next((x for x in listed if _HTTPS.match(str(x.get("url")))), None)
        server = first or (listed[0] if listed else {})
        if others := ", ".join(str(x.get("url")) for x in listed if x is not server):
            why = "a tool has one server: edit its url for another one"
            operation.notes.append(Note(level, "servers", "left out", others, why))
        written = str(server.get("url") or "/").strip()
        url, edits = _filled(written, object_of(server.get("variables")))
        url = _joined(self.base, url).partition("#")[0].partition("?")[0].rstrip("/")
        scheme, separator, rest = url.partition("://")
        host, slash, path = rest.partition("/")
        url = f"{scheme.lower()}{separator}{host.lower()}{slash}{path}" if separator else url
        if url_fault(url) or not url.startswith("https://"):
            url = placeholder_url(urlsplit(url).path.strip("/")).rstrip("/")
        if edits or url != written.rstrip("/"):
            operation.notes.append(Note(level, "server", "changed", written, url))
        return url, edits

    def _servers(self, operation: Operation) -> tuple[str, list[Json]]:
        """Return the servers of an operation, after the source that a note about them names.

        Its own are before those of its path and of the document (OpenAPI 3.1, 4.8.10 and 4.8.9).
        """
        level, own = DOCUMENT, operation.value
        listed = swagger.servers(self.value, own, self.base) if self.is_swagger else []
        holders = ((operation.id, own), (operation.id, operation.item), (DOCUMENT, self.value))
        for name, holder in holders:
            if not listed and isinstance(servers := holder.get("servers"), list):
                level, listed = name, objects_in(servers)
        return level, listed


def _filled(url: str, variables: Json) -> tuple[str, list[str]]:
    """Return a server's URL with its variables' defaults, and a line to edit for each of these."""
    edits = []
    url = _DOUBLED.sub(r"{\1}", url)
    for name in dict.fromkeys(_VARIABLE.findall(url)):
        given = object_of(variables.get(name)).get("default")
        default = "example" if given is None else clean(given)
        url = url.replace(f"/{{{name}}}", f"/{default.removeprefix('/')}")  # AWS writes /prod
        url = url.replace(f"{{{name}}}", default)
        told = "no default" if given is None else default or "an empty default"
        edits.append(f"{clean(name)} is a variable of the server: {told}")
    return url, edits


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:  # such as an odd host
        return ""
