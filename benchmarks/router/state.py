"""Objects of state: creates and updates a second, and a query by field over many objects.

`python benchmarks/router/state.py [OBJECTS]`. The store is a file on this disk; each change is one
transaction. An object is a note with a text, a set, a counter and five registers.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from capdex.json import Json
from capdex_router.state.patch import apply
from capdex_router.state.query import read
from capdex_router.state.rows import Space
from capdex_router.state.store import ObjectStore
from capdex_router.state.strategies import model

OBJECTS = 10_000
UPDATES = 2_000
QUERIES = 30
WORDS = ["oslo", "rain", "coast", "harbour", "winter", "ferry", "light", "market", "bread"]
SPACE = Space("did:nuwa:cap:note", "sc:note")
MODEL = model(
    "did:nuwa:state:note#v1",
    {
        "properties": {
            "body": {"x-crdt": "rga_text"},
            "tags": {"x-crdt": "grow_only_set"},
            "visits": {"x-crdt": "counter"},
        }
    },
)


def note(number: int, random_: random.Random) -> Json:
    """Return a note of some 300 bytes."""
    return {
        "id": f"{number:08}",
        "title": f"note {number}",
        "city": f"city {number % 500}",
        "year": 1900 + number % 120,
        "body": " ".join(random_.choices(WORDS, k=20)),
        "tags": random_.sample(WORDS, 3),
        "visits": 0,
        "createdAt": "2026-03-05T13:00:00Z",
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else OBJECTS
    random_ = random.Random(1)  # noqa: S311 - random numbers here are not secret
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        ObjectStore(Path(folder) / "state.sqlite") as store,
    ):
        notes = [note(number, random_) for number in range(count)]
        started = time.perf_counter()
        for made in notes:
            store.create(SPACE, MODEL, made["id"], made)
        print(f"create {count / (time.perf_counter() - started):,.0f}/s")
        patch: Any = [
            {"op": "replace", "path": "/title", "value": "another"},
            {"op": "add", "path": "/tags/-", "value": "seen"},
        ]
        started = time.perf_counter()
        for _ in range(UPDATES):
            id_ = f"{random_.randrange(count):08}"
            store.update(SPACE, MODEL, id_, lambda value: apply(value, patch))
        print(f"update {UPDATES / (time.perf_counter() - started):,.0f}/s")
        for what, query in {
            "by a text": {"where": {"city": "city 77"}},
            "by a number": {"where": {"year": {"$gte": 1980, "$lt": 1982}}},
            "by a tag, newest first": {
                "where": {"tags": {"$contains": "seen"}},
                "order": [{"field": "createdAt", "direction": "desc"}],
            },
            "without a hit": {"where": {"none": 1}},
        }.items():
            times = []
            for _ in range(QUERIES):
                started = time.perf_counter()
                store.query(SPACE, MODEL, read(query))
                times.append((time.perf_counter() - started) * 1e3)
            worst = sorted(times)[int(QUERIES * 0.95)]
            print(f"query {what}: p50 {statistics.median(times):.1f} ms, p95 {worst:.1f} ms")


if __name__ == "__main__":
    main()
