"""What is valid in a package and is probably a mistake of its author.

Nodes do not look for these: `validate` shows them, and `publish` refuses a secret, what nobody
can call or install, and a template that nobody edited.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from capdex.codes import reason_codes
from capdex.diagnostics import Findings, Path, show, show_path
from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.json_schema.bounds import unusable
from capdex.manifest import prompt_injection
from capdex.manifest.bindings.contacts import contacts
from capdex.manifest.bindings.http_request import HTTP_TYPES
from capdex.manifest.manifest import Manifest, ManifestReading
from capdex.manifest.resources import MADE, fold
from capdex.manifest.tools import BUILT_IN
from capdex.manifest.urls import has_dots
from capdex.problems import Problem, Reason, Severity
from capdex_publisher.authoring.files import PROGRAMS, text_of
from capdex_publisher.authoring.scaffold import DESCRIPTION_END, TOOL_DESCRIPTION
from capdex_publisher.authoring.secret_shapes import known_secret, secret_like

_EXAMPLE_HOST: Final = re.compile(r"(?:.+\.)?example\.(?:com|net|org)(?::\d+)?", re.IGNORECASE)
_LINES: Final = re.compile(rb"[\t\n\r -~]{16,}")  # in bytes that are no text: keys are ASCII
_ELSEWHERE: Final = frozenset(
    ["$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "patternProperties"]
)
# Schemas under these words judge the value that the schema above them describes.
_BESIDE: Final = frozenset(
    ["allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"]
)


def lint(reading: ManifestReading, allow: Collection[str] = ()) -> tuple[Problem, ...]:
    """Return errors for secrets and for what nobody can use, and warnings for other mistakes.

    Errors are texts that look like secrets, URLs that no router calls, and files that no folder of
    a skill takes. The others are unedited template lines, `required` of unknown properties, schemas
    that no router uses, and state verbs without a scope. `allow` has paths of texts that look like
    secrets and are none: they are warnings, too.
    """
    manifest, problems = reading.manifest, list[Problem]()
    if manifest is not None:
        faults = [(Reason.UNEDITED, *x) for x in _unedited(manifest)]
        faults += [(Reason.UNKNOWN_REQUIRED, *x) for x in _unknown_required(manifest)]
        faults += [(Reason.TOO_LARGE, *x) for x in _unusable(manifest)]
        faults += [(Reason.MISSING_FIELD, *x) for x in _without_scope(manifest)]
        problems += [problem_at(reading, *x) for x in faults]
        for code, path, why, hint in _of_no_use(manifest):
            problems.append(problem_at(reading, code, path, why, Severity.ERROR, hint))
    found = dict(secret_like(reading.yaml.value))
    lines = enumerate(reading.data.decode("utf-8", "replace").split("\n"), 1)
    comments = secret_like({"comments": {i: x.partition("#")[2] for i, x in lines if "#" in x}})
    more = {path: why for path, why in comments if why not in found.values()}  # published, too
    for path, why in (found | more).items():
        severity = Severity.WARNING if show_path(path) in allow else Severity.ERROR
        problem = problem_at(reading, Reason.LINT_SECRET_VALUE, path, why, severity)
        problems.append(replace(problem, line=int(path[1])) if path in more else problem)
    return tuple(problems)


def lint_files(
    reading: ManifestReading, data: Mapping[str, bytes], allow: Collection[str] = ()
) -> tuple[Problem, ...]:
    """Return what `lint` and nodes look for in a package, found in the files that it names.

    `data` has their bytes by path. Programs that nobody can read are named as what they are.
    """
    problems = []
    resources = reading.manifest.resources if reading.manifest else ()
    for i, file in enumerate(resources):
        at, content = ("resources", i), data.get(file.path, b"")
        if file.media_type in PROGRAMS.values() or any(map(content.startswith, PROGRAMS)):
            kind = next((x for start, x in PROGRAMS.items() if content.startswith(start)), "")
            message = f"{file.path} is a program ({kind or file.media_type}), which nobody can read"
            problems.append(problem_at(reading, Reason.BINARY_FILE, at, message))
        text = text_of(content)
        for injection in prompt_injection.lint({} if text is None else {file.path: text}):
            message = f"{file.path}: {injection.message}"
            problems.append(problem_at(reading, injection.code, at, message))
        known = known_secret(b"\n".join(_LINES.findall(content)).decode() if text is None else text)
        if why := known or next((x for _, x in secret_like(text)), ""):
            severity = Severity.ERROR if known and show_path(at) not in allow else Severity.WARNING
            message = f"{file.path}: {why}"
            problems.append(problem_at(reading, Reason.LINT_SECRET_VALUE, at, message, severity))
    return tuple(problems)


def with_mistakes(reading: ManifestReading, mistakes: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return the problems of a file and what `lint` found, one for a code and a place."""
    said = {(x.code, x.path) for x in mistakes}
    return (*(x for x in reading.problems if (x.code, x.path) not in said), *mistakes)


def refuse_mistakes(problems: Sequence[Problem]) -> None:
    """Raise InvalidInput for a secret, for what nobody can use, and for unedited lines."""
    errors = [x for x in problems if x.severity is Severity.ERROR]
    secrets = [x for x in errors if x.code is Reason.LINT_SECRET_VALUE]
    problems = secrets or errors or [x for x in problems if x.code is Reason.UNEDITED]
    if not problems:
        return
    first = problems[0]
    message = "the package has lines of the template that are not edited"
    fix = "edit them; capdex validate FILE shows each one"
    if errors:
        message, fix = "the package has what nobody can use", first.hint
    if secrets:
        message = "the package seems to hold a secret, and everyone could read it for good"
        named = " ".join(f"--allow-secret-like '{x.path}'" for x in secrets)
        fix = f"take it out, have it replaced, and name it in auth; if it is no secret: {named}"
    place = f"line {first.line}: " if first.line else ""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise InvalidInput(
        message,
        why=f"{place}{first.path}: {first.message}{more}",
        fix=fix,
        details={"reason": str(first.code), "problems": [x.to_json() for x in problems]},
    )


def _unedited(manifest: Manifest) -> Iterator[tuple[Path, str]]:
    """Yield the path and the message of each line that stands as `init` wrote it."""
    if manifest.metadata.get("description", "").endswith(DESCRIPTION_END):
        yield ("metadata", "description"), "this is the description of the template"
    for i, tool in enumerate(manifest.tools):
        if tool.description == TOOL_DESCRIPTION:
            path = ("tools", i, "function", "description")
            yield path, f"this is the description of the template, of {tool.name}"
    for name, binding in manifest.bindings.items():
        for host in contacts({name: binding}):
            if _EXAMPLE_HOST.fullmatch(host):
                key = next((x for x in ("url", "service_uri") if x in binding), "type")
                yield ("tool_bindings", name, key), f"{host} is an example and answers no call"


def _of_no_use(manifest: Manifest) -> Iterator[tuple[Reason, Path, str, str]]:
    """Yield what routers and installers refuse, although nodes do not: why, and what to do."""
    for name, binding in manifest.bindings.items():
        if binding["type"] in HTTP_TYPES and has_dots(urlsplit(binding["url"]).path):
            why = "a part of its path is one dot or two, and no router calls such a URL"
            hint = "write the path that it leads to"
            yield Reason.BAD_BINDING, ("tool_bindings", name, "url"), why, hint
    for i, file in enumerate(manifest.resources):
        if fold(file.path).partition("/")[0] == MADE:
            why = f"{file.path} needs a folder where each skill has its file SKILL.md"
            yield Reason.BAD_RESOURCE, ("resources", i, "path"), why, "rename the folder"


def _schemas(manifest: Manifest) -> Iterator[tuple[Path, Json]]:
    for i, tool in enumerate(manifest.tools):
        yield ("tools", i, "function", "parameters"), tool.parameters
        yield ("tools", i, "function", "output_schema"), tool.output_schema or {}


def _unknown_required(manifest: Manifest) -> Iterator[tuple[Path, str]]:
    for path, schema in _schemas(manifest):
        yield from _missing(schema, path)
    for path, message in _missing(manifest.schema or {}, ()):
        yield ("schema",), f"{show_path(path)}: {message}" if path[:-1] else message


def _unusable(manifest: Manifest) -> Iterator[tuple[Path, str]]:
    for path, schema in _schemas(manifest):
        if schema and (why := unusable(schema)):
            yield path, f"no router uses this: {why}"


def _without_scope(manifest: Manifest) -> Iterator[tuple[Path, str]]:
    verbs = [verb for verb in manifest.permissions if verb in BUILT_IN]
    if verbs and manifest.memory_scope is None:
        yield ("metadata", "memory_scope"), f"without it no router allows {', '.join(verbs)}"


def _missing(schema: object, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield each `required` name that no `properties` beside it has."""
    if isinstance(schema, list):
        for i, item in enumerate(schema):
            yield from _missing(item, (*path, i))
    if not isinstance(schema, dict):
        return
    required, properties = schema.get("required"), schema.get("properties", {})
    described = _ELSEWHERE.isdisjoint(schema) and _BESIDE.isdisjoint(path[-2:])
    if isinstance(required, list) and described:
        for name in required:
            if isinstance(name, str) and name not in properties:
                why = f"{show(name)} is required, and no property has this name"
                yield (*path, "required"), why
    for key, item in schema.items():
        if key not in ("default", "const", "enum", "examples"):
            yield from _missing(item, (*path, key))


def problem_at(
    reading: ManifestReading,
    code: Reason,
    path: Path,
    message: str,
    severity: Severity = Severity.WARNING,
    hint: str = "",
) -> Problem:
    """Return a problem at a path of the package, with its place in the file."""
    line, column = Findings(reading.yaml.outline.mark).place(path)
    hint = hint or reason_codes()[code].hint
    if code is Reason.LINT_SECRET_VALUE and severity is Severity.ERROR:
        hint += f"; if it is no secret: --allow-secret-like '{show_path(path)}'"
    return Problem(code, show_path(path), message, line, column, severity, hint)
