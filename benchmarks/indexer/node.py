"""A node as people start it, watched from outside: its memory, its restart, and how fresh it is."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from chain import anvil, call, deploy, publication
from databases import Fresh

PATIENCE_S = 900.0
LOOK_S = 0.0005
PUBLICATIONS = 200


class Node:
    """A `capdex node` process; packages are looked for in an empty directory."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log

    @classmethod
    @contextmanager
    def run(
        cls, url: str, registry: str, first: int, db: str, folder: Path, *options: str
    ) -> Iterator[Node]:
        """Started with the block, and stopped with it as its operator would."""
        (folder / "empty").mkdir(exist_ok=True)
        log = folder / "node.log"
        command = [
            sys.executable, "-m", "capdex", "node", "--rpc-url", url, "--chain-id", "31337",
            "--registry", registry, "--start-block", str(first), "--db", db,
            "--ipfs", f"dir:{folder / 'empty'}", "--blocks", str(folder / "kept"),
            "--port", "0", "--log-format", "json", *options,
        ]  # fmt: skip
        env = {k: v for k, v in os.environ.items() if not k.startswith("CAPDEX_")}
        with log.open("wb") as sink:
            process = subprocess.Popen(
                command,
                env={**env, "CAPDEX_HOME": str(folder / "home")},
                stdout=sink,
                stderr=sink,
            )
        try:
            yield cls(process, log)
        finally:
            process.terminate()
            process.wait()

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            assert time.monotonic() < deadline, self.log.read_text()[-2000:]
            time.sleep(LOOK_S)

    def said(self, event: str, **fields: object) -> bool:
        """Whether its log has such a line."""
        for line in self.log.read_text().splitlines():
            if f'"{event}"' in line:
                found = json.loads(line)
                if found.get("event") == event and fields.items() <= found.items():
                    return True
        return False

    @property
    def peak_mib(self) -> float:
        """The most memory that the process has held so far; its judging processes not counted."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) / 1024
        raise ValueError("the kernel does not say")


def backfill_and_restart(
    url: str, registry: str, first: int, events: int, db: str, folder: Path
) -> tuple[float, float]:
    """The peak memory of a backfill in MiB; then seconds from a new start to following."""

    def following() -> bool:
        time.sleep(0.02)  # the log may be long
        return node.said("following", events=events)

    with Node.run(url, registry, first, db, folder) as node:
        node.until(following)
        peak_mib = node.peak_mib
    started = time.perf_counter()
    with Node.run(url, registry, first, db, folder) as node:
        node.until(following)
        return peak_mib, time.perf_counter() - started


def freshness(fresh: Fresh, folder: Path) -> list[float]:
    """Milliseconds from sending a publication, mined at once, to its row for another connection."""
    dice = random.Random(1)  # noqa: S311 - the same pauses in every run
    path = fresh("sqlite").removeprefix("sqlite:///")
    took = []
    with anvil() as url:
        account, registry, first = deploy(url)
        with Node.run(url, registry, first, f"sqlite:///{path}", folder) as node:
            node.until(lambda: node.said("following"))
            with closing(sqlite3.connect(path, isolation_level=None)) as reader:
                for number in range(PUBLICATIONS):
                    time.sleep(dice.uniform(0.02, 0.06))
                    data = publication(account, registry, range(number, number + 1))
                    started = time.perf_counter()
                    call(url, "eth_sendTransaction", data)
                    node.until(lambda count=number: stored(reader) > count)  # type: ignore[misc]
                    took.append((time.perf_counter() - started) * 1000)
    return took


def stored(reader: sqlite3.Connection) -> int:
    (count,) = reader.execute("SELECT coalesce(max(sequence), 0) FROM event").fetchone()
    return int(count)
