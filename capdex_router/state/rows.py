"""Rows of the database: a document, its merged value, and what became of them."""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import orjson

from capdex.limits import MAX_DEPTH
from capdex_router.state.object import StateObject
from capdex_router.state.strategies import Model, Strategy
from capdex_router.state.values import canonical

LIVE, DELETED, ERASED = 0, 1, 2
MAX_WORD_CHARS: Final = 512  # of an owner, a scope, a schema URI, an id

Run = Callable[..., Any]
"""Runs SQL within a transaction."""


class Space(NamedTuple):
    """The owner-bound name of a package, and its memory scope: who may touch what."""

    owner: str
    scope: str


def collection(run: Run, space: Space, schema_uri: str) -> tuple[Model, int]:
    """Return the number of a collection, made if it is not there, and its model as last noted.

    That model has no schema, and no strategies before the package itself was here.
    """
    key = (*space, schema_uri)
    run("INSERT OR IGNORE INTO collections (owner, scope, schema_uri) VALUES (?, ?, ?)", key)
    number, strategies, ttl_s, visibility = run(
        "SELECT number, strategies, ttl_s, visibility FROM collections"
        " WHERE (owner, scope, schema_uri) = (?, ?, ?)",
        key,
    ).fetchone()
    known = {name: Strategy(word) for name, word in orjson.loads(strategies or b"{}").items()}
    return Model(schema_uri, {}, known, ttl_s, visibility or "private"), number


def register(run: Run, space: Space, model: Model) -> int:
    """Return the number of a collection whose package is here; with a new model, merge anew."""
    noted, number = collection(run, space, model.uri)
    run(
        "UPDATE collections SET strategies = ?, ttl_s = ?, visibility = ? WHERE number = ?",
        (canonical(dict(model.strategies)), model.ttl_s, model.visibility, number),
    )
    if noted.strategies != model.strategies:
        held = "SELECT id, peer, blob FROM documents WHERE collection = ?"
        for id_, peer, blob in run(held, (number,)).fetchall():
            put(run, number, id_, peer, StateObject.load(model, peer or new_peer(), blob))
    return number


def put(run: Run, number: int, id_: str, peer: int | None, document: StateObject) -> Any:
    """Write a document and its value, and return the value."""
    value, conflicts = document.value(), document.conflicts()
    state = DELETED if document.deleted else LIVE
    several = canonical(conflicts, MAX_DEPTH + 1) if conflicts else None
    row = (number, id_, state, document.changed, canonical(value), several)
    run("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?, ?, ?)", row)
    blob = document.stored()
    run("INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?)", (number, id_, peer, blob))
    return value


def erase(run: Run, number: int, id_: str) -> None:
    """Remove the content of an object; its id stays taken."""
    run("INSERT OR REPLACE INTO objects VALUES (?, ?, ?, 0, NULL, NULL)", (number, id_, ERASED))
    run("DELETE FROM documents WHERE (collection, id) = (?, ?)", (number, id_))


def horizon(model: Model, now: float) -> float:
    """Return the time of which every change is past the time to live."""
    return -math.inf if model.ttl_s is None else now - model.ttl_s


def new_peer() -> int:
    """Return a number that no other writer of a document has."""
    return secrets.randbits(63) or 1
