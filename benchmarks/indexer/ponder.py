"""Ponder beside us: installed from our lock into a scratch folder, and timed.

Ponder asks an endpoint at most 20 times a second at first, which would make any comparison easy:
in the scratch copy that throttle is lifted. Its time runs from the first line it logs about the
backfill to `/ready`, which waits for final blocks only.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from chain import ROOT, Chain

SOURCES = ROOT / "benchmarks" / "ponder"
ENGINE = "node_modules/ponder/dist/esm/rpc/index.js"
THROTTLE = re.compile(r"^const (INITIAL_MAX_RPS|MAX_RPS) = \d+", re.MULTILINE)
GIVE_UP_S = 900.0


def install(folder: Path) -> Path:
    """Ponder in `folder`, without its throttle; a folder that has it is used again."""
    shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
    if not (folder / ENGINE).exists():
        shutil.copy(ROOT / ".npmrc", folder)
        npm = shutil.which("npm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        assert npm, "npm is missing: run `make dev`"
        # Not `npm ci`: it refuses a lock that leaves out optional packages for other systems.
        command = [npm, "install", "--loglevel=error"]
        subprocess.run(command, cwd=folder, env=environment(), check=True)
    engine = folder / ENGINE
    text, lifted = THROTTLE.subn(r"const \1 = 100000", engine.read_text())
    assert lifted == 2, "Ponder's throttle is not where it was"
    engine.write_text(text)
    return folder


def environment(**more: str) -> dict[str, str]:
    """Ours, with the Node of this Python environment first."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PONDER_TELEMETRY_DISABLED": "true", "CI": "1", **more}


def backfill(folder: Path, chain: Chain, db: str) -> float:
    """Seconds of one backfill from nothing: neither rows nor cached replies are there."""
    with psycopg.connect(db, autocommit=True) as connection:
        for schema in ("ponder_sync", "bench"):
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = folder / "ponder.log"
    asked = {
        "BENCH_DATABASE_URL": db,
        "BENCH_RPC": chain.url,
        "BENCH_ADDRESS": chain.registry,
        "BENCH_START": str(chain.first),
        "BENCH_END": str(chain.last - 1),  # all of it is buried: see chain.BURIED
    }
    command = [
        "node",
        "node_modules/.bin/ponder",
        "start",
        "--schema",
        "bench",
        "--port",
        str(port),
    ]
    command += ["--hostname", "127.0.0.1", "--log-format", "json"]
    with log.open("wb") as sink:
        process = subprocess.Popen(
            command, cwd=folder, env=environment(**asked), stdout=sink, stderr=sink,
            start_new_session=True,
        )  # fmt: skip
        try:
            ready = wait_until_ready(process, f"http://127.0.0.1:{port}/ready", log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    with psycopg.connect(db) as connection:
        stored = connection.execute("SELECT count(*) FROM bench.published").fetchone()
    assert stored == (chain.events,), f"Ponder stored {stored} of {chain.events}"
    return ready - backfill_began(log)


def wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> float:
    """When `/ready` first said so, in seconds since the epoch."""
    deadline = time.time() + GIVE_UP_S
    while time.time() < deadline:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - loopback
                return time.time()
        except (urllib.error.URLError, OSError):
            time.sleep(0.02)
    raise TimeoutError(f"Ponder is not ready after {GIVE_UP_S:.0f} s")


def backfill_began(log: Path) -> float:
    for line in log.read_text().splitlines():
        try:
            said: dict[str, Any] = json.loads(line)
        except json.JSONDecodeError:
            continue
        if "backfill" in str(said.get("msg", "")).lower():
            return float(said["time"]) / 1000
    raise ValueError(f"{log} says nothing of a backfill")
