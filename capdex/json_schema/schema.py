"""JSON Schema 2020-12 as packages use it (P8): strict JSON, the meta-schema's rules, local refs.

The rules of the 2020-12 meta-schema are a table here: the same bytes get the same answer whatever
version of a validator is installed, thirty times faster than by validating, and nothing can be
fetched because there is nothing that fetches. Tests compare it with `jsonschema`. Instances are
never validated.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final
from urllib.parse import unquote

from capdex.diagnostics import Findings, Path, show, type_name
from capdex.json_schema.keywords import MARKS, RULES, TYPES, Shape
from capdex.limits import MAX_DEPTH
from capdex.problems import Reason
from capdex.yaml.characters import describe, forbidden
from capdex.yaml.scalars import TooManyDigits, bounded_float, bounded_int

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
MAX_SCHEMA_BYTES: Final = 64 * 1024
MAX_SUBSCHEMAS: Final = 1000  # what a router is ready to hold for one package

SCHEMA_URI = re.compile(
    r"did:nuwa:state:[a-z][a-z0-9]*(?:-[a-z0-9]+)*#v?[0-9][0-9A-Za-z.-]{0,63}", re.ASCII
)
MAX_SCHEMA_URI_CHARS = 192
# Keywords of which nothing is left to check once their value has the right shape.
_INNER: Final = (
    *(Shape.SCHEMA, Shape.SCHEMAS, Shape.SCHEMA_MAP, Shape.DEPENDENCIES),
    *(Shape.REFERENCE, Shape.ANCHOR, Shape.ID),
)
_LEAVES: Final = frozenset(x for x in RULES if RULES[x][0] not in _INNER) - {"$schema"}
# `x-crdt` and `x-asm` say how replicas of state merge (NIP-7, state.update).
STRATEGIES: Final = (
    *("lww_register", "mv_register", "rga_text", "grow_only_set", "or_map"),
    *("counter", "flag", "log_rga"),
)
CONTAINERS: Final = ("object", "map", "list", "log")
_MERGE_WORDS: Final = {"container": CONTAINERS, "": (*STRATEGIES, *CONTAINERS)}

_INDEX = re.compile(r"0|[1-9][0-9]{0,5}", re.ASCII)
# A string or a bracket. A string's end is optional and its inside possessive: an open quote would
# cost quadratic time otherwise.
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


class BadJson(ValueError):
    """Text that is not strict JSON; `line` and `column` count from 1 (0: unknown)."""

    def __init__(self, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.line, self.column = line, column


def parse_json(text: str) -> Any:
    """Parse strict JSON: no duplicate keys, no NaN, no unsafe numbers, bounded depth (BadJson)."""
    _check_depth(text)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_int=bounded_int,
            parse_float=bounded_float,
        )
    except json.JSONDecodeError as error:
        raise BadJson(f"not JSON: {error.msg}", error.lineno, error.colno) from None
    except TooManyDigits as error:
        raise BadJson(str(error)) from None
    if "\\u" in text or any(True for _ in forbidden(text)):
        written = json.dumps(value, ensure_ascii=False)  # control characters stay escaped in here
        for index in forbidden(written):
            raise BadJson(f"{describe(written[index])} is written in it as an escape")
    return value


def _check_depth(text: str) -> None:
    if text.count("{") + text.count("[") <= MAX_DEPTH:
        return
    depth = 0
    for match in _JSON_TOKEN.finditer(text):
        piece = match[0]
        if piece in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                line = text.count("\n", 0, match.start()) + 1
                column = match.start() - text.rfind("\n", 0, match.start())
                raise BadJson(f"nesting goes deeper than {MAX_DEPTH} levels", line, column)
        elif piece in "]}":
            depth -= 1


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for key, item in pairs:
        if key in value:
            raise BadJson(f"the key {show(key)} stands twice in one object")
        value[key] = item
    return value


def _no_constant(text: str) -> Any:
    raise BadJson(f"{text} is not JSON")


def is_schema_uri(text: str) -> bool:
    """True if `text` follows the Schema URI grammar, `did:nuwa:state:<name>#<version>`."""
    return len(text) <= MAX_SCHEMA_URI_CHARS and SCHEMA_URI.fullmatch(text) is not None


def check_package_schema(schema: object, path: Path, findings: Findings) -> str | None:
    """Check the parsed `schema` section; its `$id`, a Schema URI, comes back if it is one."""
    if not isinstance(schema, dict):
        message = f"the schema is {type_name(schema)}; a JSON object belongs here"
        findings.error(Reason.BAD_SCHEMA, path, message)
        return None
    uri = schema.get("$id")
    if not (isinstance(uri, str) and is_schema_uri(uri)):
        message = f"{show(uri)} is not a Schema URI" if "$id" in schema else "$id is missing"
        findings.error(Reason.BAD_SCHEMA_URI, (*path, "$id"), message)
        uri = None
    # A Schema URI carries a fragment, which the meta-schema forbids in an $id: judged above.
    without_id = {key: value for key, value in schema.items() if key != "$id"}
    check_schema(without_id, path, findings)
    return uri


def check_schema(
    root: object, path: Path, findings: Findings, *, package_schema: dict[str, Any] | None = None
) -> None:
    """Check one schema by the rules of the 2020-12 meta-schema, with local references only.

    `package_schema` is what `#/schema` means inside a tool's parameters; None where that is not
    allowed.
    """
    _Check(root, findings, package_schema).run(path)


class _Check:
    """Walk over a schema and everything that its references reach, without recursion."""

    def __init__(
        self, root: object, findings: Findings, package_schema: dict[str, Any] | None
    ) -> None:
        self._root = root
        self._findings = findings
        self._package_schema = package_schema
        self._ahead: list[tuple[Any, Path]] = []
        self._seen: set[int] = set()
        self._references: list[tuple[str, Path]] = []
        self._anchors: set[str] = set()

    def run(self, path: Path) -> None:
        self._ahead.append((self._root, path))
        while self._ahead or self._references:
            if self._ahead:
                schema, at = self._ahead.pop()
                if isinstance(schema, dict):
                    if id(schema) in self._seen:
                        continue
                    self._seen.add(id(schema))
                    if len(self._seen) > MAX_SUBSCHEMAS:
                        message = f"the schema has more than {MAX_SUBSCHEMAS} subschemas"
                        self._findings.error(Reason.TOO_MANY, path, message)
                        return
                    self._subschema(schema, at)
                elif not isinstance(schema, bool):
                    message = f"this is {type_name(schema)}; a schema belongs here"
                    self._findings.error(Reason.BAD_SCHEMA, at, message)
            else:  # every anchor in reach is known by now
                self._follow(*self._references.pop(), path)

    def _subschema(self, schema: dict[str, Any], path: Path) -> None:
        for keyword, value in schema.items():
            rule = RULES.get(keyword)
            if rule is None:
                if keyword in MARKS:
                    self._merge_annotation(value, (*path, keyword))
                continue
            shape, expected, holds = rule
            if not holds(value):
                typo = shape is Shape.TYPE and isinstance(value, str)
                hint = self._findings.suggest(value, TYPES) if typo else ""
                message = f"{keyword} must be {expected}"
                self._findings.error(Reason.BAD_SCHEMA, (*path, keyword), message, hint=hint)
            elif keyword not in _LEAVES:
                self._keyword(shape, keyword, value, (*path, keyword))

    def _merge_annotation(self, value: object, path: Path) -> None:
        """Flag words that no runtime knows; they never refuse a package.

        The value is a word, or a mapping whose `container` is a container and whose `type`, `crdt`
        or `strategy` a strategy.
        """
        words = {"": value}
        if isinstance(value, dict):
            keys = ("container", "type", "crdt", "strategy")
            words = {key: value[key] for key in keys if key in value}
        for key, word in words.items():
            known = _MERGE_WORDS.get(key, _MERGE_WORDS[""])
            if word not in known:
                there = f"there are {', '.join(known)}"
                hint = self._findings.suggest(word, known) if isinstance(word, str) else ""
                at = (*path, key) if key else path
                message = f"{show(word)} is not a way to merge; {there}"
                self._findings.warn(Reason.BAD_SCHEMA, at, message, hint=hint or there)

    def _keyword(self, shape: Shape, keyword: str, value: Any, at: Path) -> None:
        if shape is Shape.SCHEMA:
            self._ahead.append((value, at))
        elif shape is Shape.SCHEMAS:
            self._ahead.extend((item, (*at, i)) for i, item in enumerate(value))
        elif shape in (Shape.SCHEMA_MAP, Shape.DEPENDENCIES):
            self._ahead.extend(
                (item, (*at, key))
                for key, item in value.items()
                if not (shape is Shape.DEPENDENCIES and isinstance(item, list))
            )
        elif shape is Shape.REFERENCE:
            self._references.append((value, at))
        elif shape is Shape.ANCHOR:
            if value in self._anchors:  # validators differ in which of the two they take
                message = f"the anchor {show(value)} stands twice in one schema"
                self._findings.error(Reason.BAD_SCHEMA, at, message)
            self._anchors.add(value)
        elif keyword == "$id":
            message = "$id belongs at the top of the package's schema only"
            self._findings.error(Reason.BAD_SCHEMA, at, message)
        elif value.removesuffix("#") != DIALECT:
            message = f"{show(value)} is not the dialect of packages"
            self._findings.error(Reason.BAD_SCHEMA, at, message, hint=f"write {DIALECT}")

    def _follow(self, reference: str, path: Path, top: Path) -> None:
        if not reference.startswith("#"):
            self._findings.error(
                Reason.BAD_SCHEMA,
                path,
                f"{show(reference)} points out of the package; nothing is ever fetched",
                hint="copy it under $defs and refer to #/$defs/…",
            )
            return
        steps = pointer_steps(reference)
        if steps is None:
            anchor = unquote(reference[1:])
            if anchor not in self._anchors:
                self._findings.error(Reason.BAD_SCHEMA, path, f"no $anchor is named {show(anchor)}")
            return
        in_package = self._package_schema is not None and steps[:1] == ["schema"]
        document = self._package_schema if in_package else self._root
        exists, target = at_pointer(document, steps[1:] if in_package else steps)
        if not exists or not isinstance(target, dict | bool):
            message = f"{show(reference)} points at {'no schema' if exists else 'nothing'}"
            self._findings.error(Reason.BAD_SCHEMA, path, message)
        elif not in_package:  # the package's schema is checked by itself
            self._ahead.append((target, (*top, *steps)))


def pointer_steps(reference: str) -> list[str] | None:
    """Return the steps of a local reference that is a JSON pointer; None for an anchor."""
    fragment = unquote(reference[1:])
    if fragment and not fragment.startswith("/"):
        return None
    return [x.replace("~1", "/").replace("~0", "~") for x in fragment.split("/")[1:]]


def at_pointer(document: object, steps: Iterable[str]) -> tuple[bool, Any]:
    """Follow a JSON pointer given as steps (RFC 6901): True and the value, or False and None."""
    for step in steps:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list) and _INDEX.fullmatch(step) and int(step) < len(document):
            document = document[int(step)]
        else:
            return False, None
    return True, document
