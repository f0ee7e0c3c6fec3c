"""state.py COUNT [--seed N]: histories of replicated objects, and kill -9 at writes of the store.

COUNT random histories of one object on two to five replicas are held against an oracle for each
kind of field (tests/router/state/histories.py). A tenth as many times a process that changes a
store is killed at a random moment: each transaction must be there as a whole or not at all, what
was acknowledged must be there, and each merged value must be that of its document. The last line is
`N passed, N failed`.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from attempts import arguments, conclude

from capdex_router.state import rows
from capdex_router.state.object import StateObject
from capdex_router.state.patch import apply
from capdex_router.state.query import read
from capdex_router.state.rows import Space
from capdex_router.state.store import ObjectStore
from capdex_router.state.strategies import model
from capdex_router.state.sync import SyncEntry, merge_entries

HISTORIES = Path(__file__).parents[1] / "router" / "state" / "histories.py"
SPACE = Space("did:nuwa:cap:note", "sc:note")
MODEL = model(
    "did:nuwa:state:note#v1",
    {
        "properties": {
            "n": {"x-crdt": "counter"},
            "log": {"x-crdt": "log_rga"},
            "text": {"x-crdt": "rga_text"},
        }
    },
)
MERGED = 5  # objects of one merge
MOST_STEPS = 200  # of one store: its documents grow
LONGEST_S = 0.2  # of a life: some tens of transactions


def loaded(path: Path) -> ModuleType:
    """A module beside the tests, which are no package for a script."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def objects(store: ObjectStore) -> dict[str, Any]:
    page = store.query(SPACE, MODEL, read({"limit": 100}))
    return {hit.id: hit.value for hit in page.hits}


def entry(number: int, step: int, peer: int) -> SyncEntry:
    """One object as another installation made it at a step."""
    document = StateObject.create(MODEL, peer, {"step": step, "text": "x" * step}, float(step))
    return SyncEntry(SPACE.scope, MODEL.uri, f"m{number}", document.exported())


def live(path: Path, acknowledge: int) -> None:
    """Change the store without end; each step has four transactions, and is acknowledged."""
    with ObjectStore(path) as store:
        found = objects(store)
        if "a" not in found:
            store.create(SPACE, MODEL, "a", {"n": 0, "log": [], "text": ""})
            found = objects(store)
        step = found["a"]["n"]
        complete(store, step)
        while True:
            step += 1
            text = f"{step} " * 50
            patch = [
                {"op": "replace", "path": "/n", "value": step},
                {"op": "add", "path": "/log/-", "value": step},
                {"op": "replace", "path": "/text", "value": text},
            ]
            store.update(SPACE, MODEL, "a", partial(apply, patch=patch))
            complete(store, step)
            os.write(acknowledge, step.to_bytes(4, "big"))


def complete(store: ObjectStore, step: int) -> None:
    """The rest of a step that may have been cut short."""
    found = objects(store)
    if step and f"c{step}" not in found:
        store.create(SPACE, MODEL, f"c{step}", {"step": step})
    if f"c{step - 3}" in found:
        store.delete(SPACE, MODEL, f"c{step - 3}", hard=True)
    if step and found.get("m0", {}).get("step") != step:
        made = [entry(number, step, peer=1_000 + step) for number in range(MERGED)]
        merge_entries(store, SPACE.owner, made)


def check(path: Path, acknowledged: int) -> int:
    """Return the step that a store is at; raises AssertionError for anything between two states."""
    with ObjectStore(path) as store:
        with store.database.reading() as run:
            assert run("PRAGMA integrity_check").fetchone() == ("ok",)
            for id_, peer, blob, value in run(
                "SELECT id, peer, blob, CAST(value AS TEXT) FROM documents"
                " JOIN objects USING (collection, id)"
            ).fetchall():
                document = StateObject.load(MODEL, peer or rows.new_peer(), blob)
                assert document.value() == json.loads(value), id_
        stored = objects(store)
    if "a" not in stored:
        assert acknowledged == 0
        return 0
    step = int(stored["a"]["n"])
    assert step >= acknowledged, f"step {acknowledged} was acknowledged, {step} is there"
    if step:
        assert stored["a"]["text"] == f"{step} " * 50
    assert stored["a"].get("log", []) == list(range(1, step + 1))
    steps = {stored[id_]["step"] for id_ in stored if id_.startswith("m")}
    assert len(steps) <= 1, f"a merge is there in part: {steps}"
    assert steps <= {step, step - 1}
    assert sum(id_.startswith("m") for id_ in stored) in (0, MERGED)
    kept = {int(id_[1:]) for id_ in stored if id_.startswith("c")}
    last = {n for n in range(step - 2, step + 1) if n > 0}
    assert kept in (last, last - {step} | {n for n in (step - 3,) if n > 0},
                    last | {n for n in (step - 3,) if n > 0}), (kept, step)  # fmt: skip
    return step


def kill(path: Path, random: Random) -> int:
    """Let a process live for a moment, kill it, and check what it left; return its step."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            live(path, writer)
        except BaseException:  # noqa: BLE001 - the parent sees that it ended by itself
            traceback.print_exc()
        os._exit(9)
    os.close(writer)
    time.sleep(random.random() * LONGEST_S)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the process ended by itself"
    acknowledged = 0
    with os.fdopen(reader, "rb") as told:
        data = told.read()
    if len(data) >= 4:
        acknowledged = int.from_bytes(data[: len(data) // 4 * 4][-4:], "big")
    return check(path, acknowledged)


def main() -> int:
    chosen = arguments(__doc__ or "").parse_args()
    histories = loaded(HISTORIES)
    failed = 0
    for seed in range(chosen.seed, chosen.seed + chosen.count):
        try:
            histories.run(seed)
        except AssertionError as wrong:
            failed += 1
            print(f"FAILED history {seed}: {str(wrong)[:300]}", flush=True)
    kills, random = max(1, chosen.count // 10), Random(chosen.seed)
    with tempfile.TemporaryDirectory() as folder:
        path, steps, before = Path(folder) / "0.sqlite", 0, 0
        for number in range(kills):
            try:
                step = kill(path, random)
            except AssertionError as wrong:
                failed += 1
                step = before = 1_000_000
                print(f"FAILED kill {number}: {str(wrong)[:300]}", flush=True)
            steps += step - before
            before = step
            if step > MOST_STEPS:
                path, before = Path(folder) / f"{number + 1}.sqlite", 0
    print(f"{chosen.count} histories; {kills} kills in {steps} steps of 4 transactions")
    return conclude(chosen.count + kills, failed)


if __name__ == "__main__":
    sys.exit(main())
