"""The four verbs `state.create`, `.update`, `.query` and `.delete` as tools of a package (NIP-7).

A verb touches the objects of its package's schema in its memory scope, and nothing else: what it
would touch is stated before it runs, and it runs with a scope token for exactly that.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from capdex.errors import Code, InvalidInput, Refused
from capdex.json import Json
from capdex.manifest.tools import Tool
from capdex_router.model.capability import Check, Owner
from capdex_router.model.requests import Request, StateRequest
from capdex_router.policy import tokens
from capdex_router.state.patch import Patched, apply
from capdex_router.state.query import MAX_LIMIT, ObjectQuery, read
from capdex_router.state.rows import MAX_WORD_CHARS, Space
from capdex_router.state.store import FoundObject, ObjectStore
from capdex_router.state.strategies import Model
from capdex_router.state.values import copied

_EVERY: Final = ("schema_uri", "memory_scope", "scope")
_CLAUSES: Final = ("select", "where", "filter", "order", "limit", "cursor")
_WORDS: Final = {
    "state.create": ("object",),
    "state.update": ("id", "patch"),
    "state.query": ("query", *_CLAUSES),
    "state.delete": ("id", "mode"),
}


@dataclass(frozen=True, slots=True)
class StateTool:
    """One verb of one package; `check` judges what it stores."""

    verb: str
    owner: Owner
    model: Model
    store: ObjectStore
    check: Check

    def requests(self, arguments: Json) -> Sequence[Request]:
        """Return the one access of a call.

        Raises InvalidInput for arguments that the verb does not have, Refused PERMISSION_DENIED for
        another schema than the package's.
        """
        return [self._request(arguments)]

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Run the verb; raises Refused PERMISSION_DENIED without a token for just this."""
        request = self._request(arguments)
        tokens.check(time.time(), self.owner.digest, request)
        if request.scope != self.owner.scope:  # whatever the token says
            raise _denied("the objects are of another scope")
        run = {
            "state.create": self._create,
            "state.update": self._update,
            "state.query": self._query,
            "state.delete": self._delete,
        }[self.verb]
        return await asyncio.to_thread(run, Space(self.owner.name, request.scope), arguments)

    def _request(self, arguments: Json) -> StateRequest:
        words = (*_EVERY, *_WORDS[self.verb])
        for name in arguments:
            if name not in words:
                raise InvalidInput(
                    f"{self.verb} has no argument {name[:64]!r}", fix=f"it takes {', '.join(words)}"
                )
        scope = arguments.get("memory_scope", arguments.get("scope", self.owner.scope))
        uri = arguments.get("schema_uri", self.model.uri)
        inner = arguments.get("query")
        if self.verb == "state.query" and isinstance(inner, dict) and "from" in inner:
            uri = inner["from"] if uri == self.model.uri else uri
        if not isinstance(scope, str):
            raise _denied("its package has no memory_scope")
        if uri != self.model.uri:
            raise _denied(f"its package owns the objects of {self.model.uri} alone")
        hard = self.verb == "state.delete" and _mode(arguments) == "hard"
        return StateRequest(self.verb, scope, self.model.uri, hard)

    def _create(self, space: Space, arguments: Json) -> Json:
        value = arguments.get("object")
        if not isinstance(value, dict):
            raise InvalidInput("state.create takes an object", fix="give it as object: {…}")
        value = copied(value)
        id_ = value.get("id")
        if id_ is None:
            id_ = str(uuid.uuid4())
            if "id" in (self.model.schema.get("properties") or {}):
                value["id"] = id_
        self._validate(value)
        self.store.create(space, self.model, _id(id_), value)
        return {"id": id_}

    def _update(self, space: Space, arguments: Json) -> Json:
        id_ = _id(arguments.get("id"))

        def change(value: Json) -> Patched:
            patched = apply(value, arguments.get("patch"))
            new = patched.value
            if not isinstance(new, dict):
                raise InvalidInput(
                    "the patch makes something else than an object",
                    fix="patch fields of the object, not the whole of it",
                )
            if value.get("id") != new.get("id"):
                raise InvalidInput(
                    "an object keeps its id",
                    fix="leave id out of the patch, or create another object",
                )
            self._validate(new)
            return patched

        return {"id": id_, "object": self.store.update(space, self.model, id_, change)}

    def _query(self, space: Space, arguments: Json) -> Json:
        page = self.store.query(space, self.model, _asked(arguments))
        return {"objects": [self._shown(hit) for hit in page.hits], "cursor": page.cursor}

    def _delete(self, space: Space, arguments: Json) -> Json:
        id_, mode = _id(arguments.get("id")), _mode(arguments)
        self.store.delete(space, self.model, id_, hard=mode == "hard")
        return {"id": id_, "deleted": mode}

    def _shown(self, hit: FoundObject) -> Json:
        """Return a hit; `valid` is there if a merge made an object that breaks its schema."""
        shown: Json = {"id": hit.id, "object": hit.shown}
        if hit.conflicts:
            shown["conflicts"] = hit.conflicts
        if self.check(self.model.schema, hit.value) is not None:
            shown["valid"] = False
        return shown

    def _validate(self, value: Json) -> None:
        why = self.check(self.model.schema, value)
        if why is not None:
            raise InvalidInput(
                f"the object breaks the schema {self.model.uri}",
                why=why,
                fix="give an object of that schema: describe shows it",
            )


def _asked(arguments: Json) -> ObjectQuery:
    """Return the query of a call: as one object (ASM-QL), or its clauses among the arguments."""
    clauses = {name: arguments[name] for name in _CLAUSES if name in arguments}
    if "query" not in arguments:
        return read(clauses)
    if clauses:
        raise InvalidInput(
            f"{next(iter(clauses))} belongs into query", fix="put it into query, or leave query out"
        )
    return read(arguments["query"])


def _mode(arguments: Json) -> str:
    mode = arguments.get("mode", "soft")
    if mode not in ("soft", "hard"):
        raise InvalidInput("mode is soft or hard", fix="give one of them, or leave it out")
    return str(mode)


def _id(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_WORD_CHARS:
        raise InvalidInput(
            f"an id is a text of 1 to {MAX_WORD_CHARS} characters",
            fix="give one of that kind, as state.create and state.query return it",
        )
    return value


def _denied(why: str) -> Refused:
    return Refused(
        "these objects may not be used",
        Code.PERMISSION_DENIED,
        why=why,
        fix="use the package's own objects; more than these only its author can ask for",
    )


_PATCH: Final = [{"op": "add", "path": "/field", "value": "new"}]
_ID: Final = {"type": "string", "description": "Id of the object."}
_STANDARD: Final[dict[str, tuple[str, dict[str, Any], tuple[str, ...]]]] = {
    "state.create": ("Keep a new object.", {"object": {"$ref": "#/schema"}}, ("object",)),
    "state.update": (
        "Change an object by a JSON Patch, or {$inc, $push}.",
        {"id": _ID, "patch": {"type": ["array", "object"], "examples": [_PATCH]}},
        ("id", "patch"),
    ),
    "state.query": (
        "Find objects by a Mongo-like filter.",
        {
            "filter": {"type": "object", "description": "As {field: value} or {field: {$gt: 1}}."},
            "select": {"type": "array", "items": {"type": "string"}},
            "order": {"type": "array", "description": "[{field, direction: asc|desc}]"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
            "cursor": {"type": "string", "description": "That of the page before."},
        },
        (),
    ),
    "state.delete": (
        "Delete an object; hard erases it for good.",
        {"id": _ID, "mode": {"enum": ["soft", "hard"]}},
        ("id",),
    ),
}


def standard(verb: str, schema_uri: str) -> Tool:
    """Return the tool of a verb for a package that requires it and declares none (NIP-8)."""
    description, properties, required = _STANDARD[verb]
    return Tool(
        verb,
        description,
        {
            "type": "object",
            "properties": {"schema_uri": {"const": schema_uri}, **properties},
            "required": list(required),
        },
    )
