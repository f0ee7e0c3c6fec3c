"""Validation against the schemas of packages: no reference leaves a schema, no regex is slow."""

from __future__ import annotations

import json
from typing import Final, NamedTuple, NoReturn

import jsonschema_rs
import orjson

from capdex.errors import InvalidInput
from capdex.json import Json
from capdex.json_schema.bounds import NO_INPUT_HELPS, evaluations_of, measure
from capdex_router.policy.quoting import quoted

MAX_COMPILED: Final = 1_024
MAX_WORK: Final = 10_000_000  # parts of a value times parts of a schema; a fraction of a second
MAX_WORK_TOLD: Final = 20_000  # to say where a value is wrong costs a thousand times as much
MAX_WHY_CHARS: Final = 500
MAX_CAUSES: Final = 4  # that are told of alternatives
# Their messages have words of a schema or of a value as they are, which may read as the router's.
_RAW: Final = ("pattern", "unevaluatedProperties", "additionalProperties", "format")
_ALTERNATIVES: Final = (
    jsonschema_rs.ValidationErrorKind.AnyOf,
    jsonschema_rs.ValidationErrorKind.OneOfNotValid,
)


def canonical(arguments: object) -> bytes:
    """Return an input as JSON: keys sorted, 5.0 as the integer that JSON Schema takes it for."""
    data = orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS)
    return orjson.dumps(json.loads(data, parse_float=_number))


def _number(text: str) -> float:
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


class _Compiled(NamedTuple):
    """A validator, and how many parts of its schema judge one place of a value at most."""

    validator: jsonschema_rs.Draft202012Validator
    evaluations: int


class Validation:
    """Compiled validators, kept for the schemas that were used last."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Json, _Compiled]] = {}

    def check(self, schema: Json, value: object) -> str | None:
        """Return why a value breaks a schema (JSON Schema 2020-12), and None if it does not.

        Raises InvalidInput for a schema that is too large or cannot be compiled.
        """
        compiled = self._validator(schema)
        try:
            work = measure(value) * compiled.evaluations
        except InvalidInput as error:
            return error.message
        if work > MAX_WORK:
            return "it has too many parts to be checked"
        try:
            if compiled.validator.is_valid(value):
                return None
            if work > MAX_WORK_TOLD:
                return "a part of it breaks the schema, and it has too many to tell which"
            compiled.validator.validate(value)
        except jsonschema_rs.ValidationError as error:
            if isinstance(error.kind, _ALTERNATIVES):  # each alternative has a cause of its own
                causes = (_why(branch[0]) for branch in error.kind.context[:MAX_CAUSES])
                return ", and ".join(dict.fromkeys(causes))[:MAX_WHY_CHARS]
            return _why(error)
        except (ValueError, OverflowError) as error:
            return f"it cannot be checked: {error}"[:MAX_WHY_CHARS]
        return None

    def _validator(self, schema: Json) -> _Compiled:
        # A schema is kept with its validator, so that no other object gets its id meanwhile.
        if id(schema) not in self._known:
            if len(self._known) >= MAX_COMPILED:
                self._known.pop(next(iter(self._known)))
            self._known[id(schema)] = schema, _compile(schema)
        return self._known[id(schema)][1]


def _compile(schema: Json) -> _Compiled:
    judging = evaluations_of(schema, len(orjson.dumps(schema)))
    try:
        validator = jsonschema_rs.Draft202012Validator(
            schema, retriever=_refuse, pattern_options=jsonschema_rs.RegexOptions()
        )
    except (ValueError, jsonschema_rs.ReferencingError) as error:
        why = quoted(str(error).partition("\n")[0], MAX_WHY_CHARS)
        raise InvalidInput("the schema cannot be used", why=why, fix=NO_INPUT_HELPS) from None
    return _Compiled(validator, judging)


def _why(error: jsonschema_rs.ValidationError) -> str:
    """Return the place and the cause of an error, cut."""
    place = "/".join(map(_step, error.instance_path))
    last = error.schema_path[-1] if error.schema_path else ""
    text = quoted(error.message, MAX_WHY_CHARS) if last in _RAW else error.message
    return (f"at {place}: {text}" if place else text)[:MAX_WHY_CHARS]


def _step(part: str | int) -> str:
    return str(part) if isinstance(part, int) or part.isidentifier() else quoted(part)


def _refuse(uri: str) -> NoReturn:
    raise ValueError(f"a schema refers to nothing outside of it: {uri[:100]}")
