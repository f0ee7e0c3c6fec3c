"""The manifest of a package: the bytes of an `.acp.yaml` in, its fields or its problems out.

Reading is total: whatever the bytes are, `read` returns, with every problem of the file at once
(NIP-7, P7 to P10c). Signature, author and publisher are only read here; `capdex.package` judges
them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from capdex.diagnostics import Findings, LineColumn, Path, show, type_name
from capdex.errors import InvalidInput
from capdex.json_schema.schema import MAX_SCHEMA_BYTES, BadJson, check_package_schema, parse_json
from capdex.manifest import metadata as meta
from capdex.manifest.bindings.binding import FIELDS, read_bindings
from capdex.manifest.fields import Fields
from capdex.manifest.prompt_injection import lint
from capdex.manifest.resources import Resource, read_resources
from capdex.manifest.tools import Annotations, Tool, read_tools
from capdex.manifest.triggers import Trigger, read_triggers
from capdex.problems import Problem, Reason, Severity
from capdex.uri import CapabilityURI
from capdex.yaml import Scalar, Style, YamlReading, read_yaml

MAX_PROMPT_BYTES: Final = 64 * 1024

SECTIONS: Final = ("metadata", "schema", "prompt", "tools", "tool_bindings", "resources")


@dataclass(frozen=True, slots=True)
class Manifest:
    """A package's manifest, well-formed by construction: only `read` makes one.

    `document` is the whole file and `metadata` its metadata section (`acp_metadata`), both as
    written and JSON-able. `title` is metadata.name, `schema` the parsed schema section, and
    `schema_uri` its `$id`. `author`, `publisher` and `signature` are unchecked claims.
    """

    document: dict[str, Any]
    metadata: dict[str, Any]
    uri: CapabilityURI
    title: str
    description: str
    summary: str | None
    domain: str
    tags: tuple[str, ...]
    languages: tuple[str, ...]
    license: str | None
    homepage: str | None
    proof: str | None
    repository: str | None
    triggers: tuple[Trigger, ...]
    tools: tuple[Tool, ...]
    bindings: dict[str, dict[str, Any]]
    permissions: tuple[str, ...]
    memory_scope: str | None
    llm_requirements: dict[str, Any]
    schema: dict[str, Any]
    schema_uri: str
    prompt: str | None
    author: str | None
    publisher: str | None
    signature: str | None
    examples: tuple[dict[str, Any], ...]
    resources: tuple[Resource, ...]

    @property
    def unbound(self) -> tuple[str, ...]:
        """Names of tools that no router runs: they have no binding, or one of an unknown type."""
        known = {name for name, binding in self.bindings.items() if binding["type"] in FIELDS}
        return tuple(x.name for x in self.tools if not x.built_in and x.name not in known)


@dataclass(frozen=True, slots=True)
class ManifestReading:
    """Result of `read`: the file's YAML, its problems and, if none is an error, its manifest."""

    yaml: YamlReading
    manifest: Manifest | None
    problems: tuple[Problem, ...]

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.yaml.data

    def require(self) -> Manifest:
        """Return the manifest; raise InvalidInput with all problems in its details."""
        if self.manifest is not None:
            return self.manifest
        first = next(x for x in self.problems if x.severity is Severity.ERROR)
        place = f"line {first.line}: " if first.line else ""
        path = f"{first.path}: " if first.path else ""
        raise InvalidInput(
            "the package is not valid",
            why=f"{place}{path}{first.message}",
            fix="see every problem: capdex validate FILE",
            details={"problems": [problem.to_json() for problem in self.problems]},
        )


def read(file: bytes | YamlReading, *, lint: bool = True) -> ManifestReading:
    """Read and check the manifest of one package; never raises on content.

    A file that was parsed before is given as its YAML reading, so that it is parsed once. Without
    `lint` it is not searched for text that may steer a model, nor for triggers that match too much,
    which takes as long as all else: for those who want the manifest alone.
    """
    source = file if isinstance(file, YamlReading) else read_yaml(file)
    findings = Findings(source.outline.mark)
    findings.extend(source.problems)
    manifest = None
    if isinstance(source.value, dict):
        manifest = _Manifest(source, findings, lint).read()
    elif source.value is not None or not findings.failed:
        message = f"the file holds {type_name(source.value)}; a mapping of sections belongs here"
        findings.error(Reason.WRONG_TYPE, (), message)
    valid = None if findings.failed else manifest
    return ManifestReading(source, valid, findings.problems())


class _Manifest:
    """Reads one file, section after section, and keeps going past every problem."""

    def __init__(self, source: YamlReading, findings: Findings, lint: bool) -> None:
        self._source = source
        self._lints = lint
        self._findings = findings
        self._top = Fields(source.value, (), findings)

    def read(self) -> Manifest | None:
        top, findings = self._top, self._findings
        top.note_unknown(SECTIONS)
        section = top.get("metadata", dict, required=True)
        metadata = Fields(section or {}, ("metadata",), findings)
        schema, schema_uri = self._schema()
        tools = read_tools(top, schema)
        bindings = read_bindings(top, tools, schema)
        prompt = top.text("prompt", most_bytes=MAX_PROMPT_BYTES)
        resources = read_resources(top)
        if section is None:
            return None
        metadata.note_unknown(meta.KNOWN)
        uri = meta.read_id(metadata)
        title = metadata.text("name", required=True, most_chars=meta.MAX_TITLE_CHARS, one_line=True)
        description = metadata.text(
            "description", required=True, most_bytes=meta.MAX_DESCRIPTION_BYTES
        )
        permissions = meta.read_permissions(metadata)
        self._check_permissions(tools, permissions)
        names = [tool.name for tool in tools.values()]
        read: dict[str, Any] = {
            "summary": metadata.text("summary", most_chars=meta.MAX_SUMMARY_CHARS, one_line=True),
            "domain": meta.read_domain(metadata),
            "tags": metadata.texts("tags", most=meta.MAX_TAGS, most_chars=meta.MAX_WORD_CHARS),
            "languages": meta.read_languages(metadata),
            "license": metadata.text("license", most_chars=meta.MAX_WORD_CHARS, one_line=True),
            "homepage": (homepage := meta.read_link(metadata, "homepage")),
            "proof": meta.read_proof(metadata, homepage),
            "repository": meta.read_link(metadata, "repository"),
            "triggers": read_triggers(metadata, lint=self._lints),
            "memory_scope": metadata.text(
                "memory_scope", most_chars=meta.MAX_SCOPE_CHARS, one_line=True
            ),
            "llm_requirements": meta.read_llm_requirements(metadata),
            "author": metadata.text("author", most_chars=meta.MAX_DID_CHARS, one_line=True),
            "publisher": meta.read_publisher(metadata),
            "signature": self._signature(metadata),
            "examples": meta.read_examples(metadata, names),
        }
        if uri is None or title is None or description is None:
            return None
        if schema is None or schema_uri is None:
            return None
        if self._lints:
            tags = [(("tags", i), tag) for i, tag in enumerate(read["tags"])]
            self._lint(title, [(("summary",), read["summary"]), *tags], schema, tools)
        return Manifest(
            document=top.values,
            metadata=section,
            uri=uri,
            title=title,
            description=description,
            schema=schema,
            schema_uri=schema_uri,
            tools=tuple(tools.values()),
            bindings=bindings,
            permissions=permissions,
            prompt=prompt,
            resources=resources,
            **read,
        )

    def _lint(
        self,
        title: str,
        marked: Iterable[tuple[Path, str]],
        schema: dict[str, Any],
        tools: dict[int, Tool],
    ) -> None:
        """Warn of text that may steer a model, in the parsed schema, too."""
        deceptive = meta.deceptive_word(title)
        if deceptive is not None:
            message = f"{show(deceptive[0])} reads as {show(deceptive[1])}"
            self._findings.warn(Reason.LINT_DECEPTIVE_NAME, ("metadata", "name"), message)
        for place, text in ((("name",), title), *marked):
            if text and (mark := meta.imitated_mark(text)):
                message = f"{show(mark)} looks like a mark of a registry"
                self._findings.warn(Reason.LINT_IMITATION, ("metadata", *place), message)
        own = {name for tool in tools.values() for name in tool.parameter_names(schema)}
        own |= {tool.name for tool in tools.values()}
        document = self._top.values | {"schema": schema}
        for finding in lint(document, own_names=frozenset(own)):
            if finding.code is Reason.LINT_ENCODED and finding.path[:2] == ("metadata", "triggers"):
                continue  # an embedding is numbers by nature
            self._findings.warn(finding.code, finding.path, finding.message)

    def _schema(self) -> tuple[dict[str, Any] | None, str | None]:
        """The schema section, a string that holds JSON, and its `$id`."""
        if isinstance(self._top.values.get("schema"), dict):
            self._findings.error(
                Reason.WRONG_TYPE,
                ("schema",),
                "schema is a mapping; NIP-7 wants text that holds JSON",
                hint="write `schema: |` and the JSON, indented, below",
            )
            return None, None
        text = self._top.text("schema", required=True, most_bytes=MAX_SCHEMA_BYTES)
        if text is None:
            return None, None
        try:
            schema = parse_json(text.rstrip())  # an early end is reported inside the text
        except BadJson as error:
            at = self._place_in_schema(text, error)
            self._findings.error(Reason.BAD_SCHEMA, ("schema",), str(error), at=at)
            return None, None
        uri = check_package_schema(schema, ("schema",), self._findings)
        return (schema if isinstance(schema, dict) else None), uri

    def _place_in_schema(self, text: str, error: BadJson) -> LineColumn | None:
        """Return the place in the file of a place inside the schema's text; None if unknown."""
        scalar = self._source.outline.scalar(("schema",))
        if not error.line or scalar is None or scalar.style is not Style.BLOCK:
            return None
        lines, inner = self._source.data.decode().split("\n"), text.split("\n")[error.line - 1]
        line = scalar.line + error.line
        if line > len(lines) or not lines[line - 1].endswith(inner):
            return None
        return line, len(lines[line - 1]) - len(inner) + error.column

    def _check_permissions(self, tools: dict[int, Tool], permissions: tuple[str, ...]) -> None:
        # NIP-7, Built-in storage tools: a capability MUST declare the CRUD verbs it needs.
        for i, tool in tools.items():
            if tool.built_in and tool.name not in permissions:
                message = f"{tool.name} is used, but permissions.require does not declare it"
                path = ("tools", i, "function", "name")
                self._findings.error(Reason.UNDECLARED_PERMISSION, path, message)

    def _signature(self, metadata: Fields) -> str | None:
        signature: str | None = metadata.get("signature", str)
        scalar: Scalar | None = self._source.outline.scalar(("metadata", "signature"))
        if signature is None or scalar is None or not signature.strip():
            return None
        written = self._source.data[scalar.start : scalar.end]
        if scalar.style is not Style.PLAIN or b"\n" in written:
            message = "metadata.signature is not one plain value on one line"
            self._findings.error(
                Reason.SIGNATURE_ENCODING, metadata.at("signature"), message, hint="run capdex sign"
            )
        return signature


# effects of tools ---------------------------------------------------------------------------

READS: Final = frozenset({"http_get", "GET", "state.query"})
WRITES: Final = frozenset({"PUT", "PATCH", "DELETE"})  # methods of `http`, whatever is stated
KEEPS: Final = frozenset({"state.create", "state.update"})  # what can be undone


class Effects(NamedTuple):
    """Effects of a tool, with MCP's cautious values where nothing is known."""

    read_only: bool = False
    destructive: bool = True
    idempotent: bool = False


def effects(manifest: Manifest, tool: Tool) -> Effects:
    """Return the effects of a tool; what a package states about a built-in tool is not read."""
    binding = manifest.bindings.get(tool.name, {})
    kind = tool.name if tool.built_in else binding.get("type")
    kind = str(binding.get("method")) if kind == "http" else kind
    if kind in WRITES:
        return Effects(idempotent=bool(tool.annotations.idempotent))
    stated = Annotations() if tool.built_in else tool.annotations
    read_only = stated.read_only
    if read_only is None:
        read_only = kind in READS and not stated.destructive
    destructive = stated.destructive
    if destructive is None:
        destructive = not read_only and kind not in KEEPS
    return Effects(
        read_only, destructive, read_only if stated.idempotent is None else stated.idempotent
    )
