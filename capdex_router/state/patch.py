"""JSON Patch (RFC 6902) and NIP-8's `$inc` and `$push`, bounded in steps and size. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from capdex.errors import Code, InvalidInput
from capdex.json import Json
from capdex_router.state.values import MAX_OBJECT_BYTES, copied, equal

MAX_OPERATIONS: Final = 64
_EXAMPLE: Final = 'write it as in [{"op": "replace", "path": "/field", "value": 1}]'
MAX_POINTER_CHARS: Final = 1_024
_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,8}", re.ASCII)
_ESCAPE: Final = re.compile(r"~(?![01])")
_OPERATIONS: Final = ("add", "remove", "replace", "move", "copy", "test")


@dataclass(frozen=True, slots=True)
class Patched:
    """The result of a patch, and the names of the top-level fields that it wrote."""

    value: Any
    touched: frozenset[str]


class _Conflict(Exception):
    """An operation that does not fit the document; the text says why."""


def apply(value: object, patch: object, *, budget: int = MAX_OBJECT_BYTES) -> Patched:
    """Return a document after a patch; the document itself stays as it is.

    A patch is a list of at most 64 operations, all of which take effect or none, or the object
    `{"$inc": {field: number}, "$push": {field: item}}`. After each operation the document has at
    most `budget` bytes. Raises InvalidInput with the number of the operation at fault.
    """
    operations = _deltas(patch) if isinstance(patch, dict) else patch
    if not isinstance(operations, list):
        raise InvalidInput("a patch is a list of operations (RFC 6902)", fix=_EXAMPLE)
    if len(operations) > MAX_OPERATIONS:
        raise InvalidInput(
            f"the patch has {len(operations)} operations; at most {MAX_OPERATIONS} are allowed",
            Code.TOO_LARGE,
            fix="divide it into several",
        )
    document = _Document(copied(value))
    for number, operation in enumerate(operations):
        try:
            document.apply(operation)
        except _Conflict as why:
            raise InvalidInput(
                f"operation {number} of the patch does not apply",
                why=str(why),
                details={"operation": number},
                fix="read the object again, and patch what it has now; "
                f"add makes a field that is not there; {_EXAMPLE}",
            ) from None
        # `copy` doubles a document each time: the budget counts before the next one.
        size = _size(document.root)
        if size > budget:
            raise InvalidInput(
                f"the object would have {size} bytes after operation {number} of the patch",
                Code.TOO_LARGE,
                why=f"at most {budget} are kept",
                fix="keep less in it, or divide it into several objects",
            )
    return Patched(document.root, frozenset(document.touched))


def _size(value: object) -> int:
    try:
        return len(orjson.dumps(value))
    except orjson.JSONEncodeError as error:  # nested too deep, or a sum beyond 64 bits
        raise InvalidInput(
            "the patch makes no JSON",
            why=str(error)[:200],
            fix="patch in smaller numbers, and less deep",
        ) from None


def _deltas(patch: Json) -> list[Any]:
    operations: list[Any] = []
    for verb, fields in patch.items():
        if verb not in ("$inc", "$push") or not isinstance(fields, dict):
            raise InvalidInput(
                "a patch is a list of operations (RFC 6902), or $inc and $push of fields",
                fix=_EXAMPLE,
            )
        operations += [{"op": verb, "field": name, "value": item} for name, item in fields.items()]
    return operations


class _Document:
    def __init__(self, root: object) -> None:
        self.root = root
        self.touched: set[str] = set()

    def apply(self, operation: object) -> None:
        if not isinstance(operation, dict):
            raise _Conflict("it is not an object")
        match operation.get("op"):
            case "$inc":
                self._change(operation, 0, _sum)
            case "$push":
                self._change(operation, [], _pushed)
            case "add":
                self._write(_pointer(operation, "path"), _value(operation))
            case "replace":
                path = _pointer(operation, "path")
                self._at(path)
                self._write(path, _value(operation), replace=True)
            case "remove":
                self._remove(_pointer(operation, "path"))
            case "test":
                if not equal(self._at(_pointer(operation, "path")), _value(operation)):
                    raise _Conflict("the test failed: the value is another")
            case "copy":
                path, source = _pointer(operation, "path"), _pointer(operation, "from")
                self._write(path, copied(self._at(source)))
            case "move":
                self._move(_pointer(operation, "path"), _pointer(operation, "from"))
            case _:
                raise _Conflict(f"its op is none of {', '.join(_OPERATIONS)}")

    def _move(self, path: list[str], source: list[str]) -> None:
        if path[: len(source)] == source and path != source:
            raise _Conflict("a value cannot be moved into itself")
        value = self._at(source)
        if path != source:
            self._remove(source)
            self._write(path, value)

    def _change(self, operation: Json, empty: object, changed: Callable[[Any, Any], Any]) -> None:
        name = operation.get("field")
        if not isinstance(name, str):
            raise _Conflict('it is written as in {"$inc": {"field": 1}, "$push": {"list": 1}}')
        if not isinstance(self.root, dict):
            raise _Conflict("the document is not an object")
        if "." in name and name not in self.root:
            raise _Conflict(f"{name[:64]!r} is no field: $inc and $push change whole fields")
        self._write([name], changed(self.root.get(name, empty), _value(operation)))

    def _at(self, path: list[str]) -> Any:
        node = self.root
        for step in path:
            if isinstance(node, dict) and step in node:
                node = node[step]
            elif isinstance(node, list):
                node = node[_index(step, len(node) - 1)]
            else:
                raise _Conflict(f"there is nothing at {_shown(path)}")
        return node

    def _write(self, path: list[str], value: object, *, replace: bool = False) -> None:
        self._touch(path, value)
        if not path:
            self.root = value
            return
        parent = self._at(path[:-1])
        if isinstance(parent, dict):
            parent[path[-1]] = value
        elif not isinstance(parent, list):
            raise _Conflict(f"what holds {_shown(path)} is not an object or array")
        elif replace:
            parent[_index(path[-1], len(parent) - 1)] = value
        elif path[-1] == "-":
            parent.append(value)
        else:
            parent.insert(_index(path[-1], len(parent)), value)

    def _remove(self, path: list[str]) -> None:
        self._at(path)
        self._touch(path, None)
        if not path:
            self.root = None
            return
        parent = self._at(path[:-1])
        del parent[path[-1] if isinstance(parent, dict) else _index(path[-1], len(parent) - 1)]

    def _touch(self, path: list[str], value: object) -> None:
        if path:
            self.touched.add(path[0])
        else:
            for document in (self.root, value):
                self.touched.update(document if isinstance(document, dict) else ())


def _sum(old: Any, more: Any) -> Any:
    for number in (old, more):
        if isinstance(number, bool) or not isinstance(number, int | float):
            raise _Conflict("$inc adds a number to a number")
    return copied(old + more)


def _pushed(old: object, item: object) -> Any:
    if not isinstance(old, list):
        raise _Conflict("$push appends to an array")
    return [*old, item]


def _value(operation: Json) -> Any:
    if "value" not in operation:
        raise _Conflict("it has no value")
    return copied(operation["value"])


def _pointer(operation: Json, key: str) -> list[str]:
    """Return the steps of a JSON Pointer (RFC 6901)."""
    text = operation.get(key)
    if not isinstance(text, str) or len(text) > MAX_POINTER_CHARS:
        raise _Conflict(f"its {key} is not text of at most {MAX_POINTER_CHARS} characters")
    if text and not text.startswith("/"):
        raise _Conflict(f"its {key} {text[:64]!r} does not begin with /")
    if _ESCAPE.search(text):
        raise _Conflict(f"its {key} has a ~ that is neither ~0 nor ~1")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def _index(step: str, last: int) -> int:
    if not _INDEX.fullmatch(step) or int(step) > last:
        raise _Conflict(f"{step[:32]!r} is not a place in the array")
    return int(step)


def _shown(path: list[str]) -> str:
    return repr("".join(f"/{step}" for step in path)[:100])
