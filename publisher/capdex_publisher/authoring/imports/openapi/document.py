"""An OpenAPI 3 or Swagger 2.0 document: its operations, and where each is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

from capdex.errors import InvalidInput, UsageError
from capdex.json import Json
from capdex.manifest.urls import url_fault
from capdex_publisher.authoring.imports.openapi import swagger
from capdex_publisher.authoring.imports.references import target, write_pointers
from capdex_publisher.authoring.imports.report import DOCUMENT, Fate, Note, clean
from capdex_publisher.authoring.imports.source import parse, utf8
from capdex_publisher.authoring.scaffold import placeholder_url

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_NAMED: Final = 40  # operations in an error
_VARIABLE: Final = re.compile(r"\{([^{}]*)\}")
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
        value = parse(data, name)
        document: Json = value if isinstance(value, dict) else {}
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
        paths = self.value.get("paths")
        for path, named in paths.items() if isinstance(paths, dict) else ():
            item = self.target(named)
            if not isinstance(item, dict):
                if isinstance(named, dict):
                    yield Operation(clean(path), "", str(path), named)
                continue
            if item is not named:  # what stands beside a reference to a path adds to it
                item = {**item, **{key: x for key, x in named.items() if key != "$ref"}}
            more = item.get("additionalOperations")  # OpenAPI 3.2: by other methods
            every = {x: item.get(x) for x in METHODS} | (more if isinstance(more, dict) else {})
            for method, value in every.items():
                if not isinstance(value, dict):
                    continue
                id_ = value.get("operationId")
                name = id_ if isinstance(id_, str) and id_ else f"{str(method).upper()} {path}"
                yield Operation(clean(name), str(method), str(path), value, item)

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
            if not matches:
                raise UsageError(f"the document has no operation {want!r}", why=f"it has {listed}")
            if len(matches) > 1:
                exact = ", ".join(x.names[1] for x in matches)
                raise UsageError(
                    f"the document has {len(matches)} operations {want!r}",
                    why=f"they are {exact}",
                    fix=f"--operation {matches[0].names[1]!r}",
                )
            if matches[0] not in chosen:
                chosen.append(matches[0])
        return chosen

    def address(self, operation: Operation) -> tuple[str, list[str]]:
        """Return the address of an operation's server, and what of it the author must edit.

        The servers of the operation are before those of its path and of the document (OpenAPI
        3.1, 4.8.10 and 4.8.9). What no package may call stands at a host to edit.
        """
        own, level, listed = operation.value, DOCUMENT, list[Json]()
        if self.is_swagger:
            listed = swagger.servers(self.value, own, self.base)
        for name, holder in (
            *((operation.id, operation.value), (operation.id, operation.item)),
            (DOCUMENT, self.value),
        ):
            servers = holder.get("servers")
            if not listed and isinstance(servers, list):
                level, listed = name, [x for x in servers if isinstance(x, dict)]
        first = next((x for x in listed if _HTTPS.match(str(x.get("url")))), None)
        server = first or (listed[0] if listed else {})
        if others := ", ".join(str(x.get("url")) for x in listed if x is not server):
            why = "a tool has one server: edit its url for another one"
            operation.notes.append(Note(level, "servers", "left out", others, why))
        written = url = str(server.get("url") or "/").strip()
        variables = server.get("variables")
        edits = []
        for name in dict.fromkeys(_VARIABLE.findall(written)):
            variable = variables.get(name) if isinstance(variables, dict) else None
            given = variable.get("default") if isinstance(variable, dict) else None
            default = "example" if given is None else clean(given)
            url = url.replace(f"/{{{name}}}", f"/{default.removeprefix('/')}")  # AWS writes /prod
            url = url.replace(f"{{{name}}}", default)
            told = "no default" if given is None else default or "an empty default"
            edits.append(f"{clean(name)} is a variable of the server: {told}")
        url = _joined(self.base, url).partition("#")[0].partition("?")[0].rstrip("/")
        scheme, separator, rest = url.partition("://")
        host, slash, path = rest.partition("/")
        url = f"{scheme.lower()}{separator}{host.lower()}{slash}{path}" if separator else url
        if url_fault(url) or not url.startswith("https://"):
            url = placeholder_url(urlsplit(url).path.strip("/")).rstrip("/")
        if edits or url != written.rstrip("/"):
            operation.notes.append(Note(level, "server", "changed", written, url))
        return url, edits


def _joined(base: str, url: str) -> str:
    try:
        return urljoin(base, url)
    except ValueError:  # such as an odd host
        return ""
