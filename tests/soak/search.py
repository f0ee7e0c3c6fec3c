"""search.py COUNT [--seed N]: kill -9 a reader while it saves, reads or merges its search.

A process follows an index with the search of a reader, and saves it after every change, while
packages are published. It is killed COUNT times: at one of its own writes, renames, removals and
merges (at a write with half of the file on disk), or at a random moment. What the next start
answers must be what a reader answers that builds its search from the database: hits, scores,
facets, totals and routes. Files of saves that were cut short must not gather. The last line is
`N passed, N failed`.
"""

# ruff: noqa: T201, S311 - a script prints; random numbers here are not secret

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

from attempts import arguments, attempt, conclude
from state import loaded

sys.path.append(str(Path(__file__).resolve().parents[2]))

from capdex_indexer.query.index import Index
from capdex_indexer.query.search import follower, live, snapshots
from capdex_indexer.query.search.filters import SearchFilters
from capdex_indexer.store import Store
from tests.indexer.found import search_page

MAKING = Path(__file__).parents[1] / "indexer" / "making.py"
POINTS = 40  # of a life: some saves, with a merge after each three
BATCHES = 6  # publications in a life
LONGEST_S = 3.0
MOST_FILES = 40  # segments are merged by fours, and removed once no manifest names them
MOST_PACKAGES = 600  # of one index
WORD_TEXT = (
    "weather rain wind note plan recipe flight invoice letter train poem tax photo contract song "
    "currency parcel plant map novel ticket house wine habit star tide menu loan film stock road"
)
WORDS = WORD_TEXT.split()
QUERIES = (*WORDS[:8], "", "rain wind", "recip", "weahter", "plan a flight with a map", "/note-3 x")


def follow(db: str, directory: Path, point: int) -> None:
    """Follow an index until this process is killed, at the latest at one of its points."""
    left = [point]

    def die_at(before: Callable[..., None], work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            left[0] -= 1
            if not left[0]:
                before(*given)
                os.kill(os.getpid(), signal.SIGKILL)
            return work(*given, **named)

        return counted

    def halve(descriptor: int) -> None:
        os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)

    def nothing(*_: object) -> None:
        pass

    os.fsync = die_at(halve, os.fsync)
    for name in ("replace", "unlink"):
        setattr(Path, name, die_at(nothing, getattr(Path, name)))
    live.merge_words = die_at(nothing, live.merge_words)  # type: ignore[assignment]
    live.LiveSearch.restore = die_at(nothing, live.LiveSearch.restore)  # type: ignore[method-assign]
    follower.SAVE_S = follower.LOOK_S = 0.001  # type: ignore[misc]
    with closing(Index(db)) as index:
        index.follow(directory)
        search_page(index, "")
        print("follows", flush=True)
        signal.pause()


def answers(index: Index) -> list[object]:
    """Everything that is said to some queries, without what differs between two runs."""
    said: list[object] = []
    for query in QUERIES:
        found = search_page(index, query, limit=50, facets=["tag"])
        said.append([(hit.release.name, hit.score, hit.matched) for hit in found.hits])
        said.append((found.total, found.facets))
        routed = index.route(query or "note", limit=50)
        said.append((routed.total, [each for each, _ in routed.packages]))
    some = search_page(index, WORDS[0], SearchFilters.parse({"tag": WORDS[1]}), limit=50)
    said.append([(hit.release.name, hit.score) for hit in some.hits])
    return said


class World:
    """An index that grows, and the directory of the search of a reader that is killed."""

    def __init__(self, folder: Path, random: Random) -> None:
        self.random, self.folder = random, folder
        self.db, self.directory = f"sqlite:///{folder}/index.db", folder / "search"
        self._making: Any = loaded(MAKING)
        self._store, self._chain = (
            Store.open(self.db, self._making.DEPLOYMENT),
            self._making.Chain(),
        )
        self.packages = self.restored = 0
        self.publish()

    def close(self) -> None:
        self._store.close()

    def publish(self) -> None:
        """Publish some packages, and change some that are there."""
        for _ in range(self.random.randint(1, 6)):
            old = self.packages and self.random.random() < 0.3
            number = self.random.randrange(self.packages) if old else self.packages
            self.packages += not old
            says = " ".join(self.random.choices(WORDS, k=self.random.randint(3, 20)))
            self._chain.publish(
                f"{WORDS[number % len(WORDS)]}-{number}",
                f"1.{len(self._chain.blocks)}.0",
                description=says,
                tags=self.random.sample(WORDS, 2),
                triggers=[{"type": "keyword", "value": f"/{WORDS[number % 7]}-{number % 9}"}],
            )
        self._making.follow(self._store, self._chain)

    def kill(self) -> str:
        """Let a reader live beside publications until it is killed; return how it died."""
        point = self.random.randint(1, POINTS) if self.random.random() < 0.8 else 0
        command = [sys.executable, __file__, "--follow", self.db, str(self.directory), str(point)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            began = process.stdout.readline()
            for _ in range(BATCHES if began else 0):
                self.publish()
            try:
                until = LONGEST_S if point else self.random.random() * 0.5
                process.wait(until)
                how = f"at point {point}"
            except subprocess.TimeoutExpired:
                how = "at a random moment"
                process.kill()
            assert process.wait() == -signal.SIGKILL, "the process ended by itself"
        return how

    def check(self) -> list[str]:
        """Start from what a killed reader left, and from nothing; return what differs."""
        wrong = []
        left = sorted(x.name for x in self.directory.iterdir()) if self.directory.exists() else []
        if len(left) > MOST_FILES:
            wrong.append(f"{len(left)} files are left")
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        if left:
            shutil.copytree(self.directory, copy)
        with closing(Index(self.db)) as built, closing(Index(self.db)) as index:
            expected = answers(built)
            with index.read() as connection:
                self.restored += self._restore(index, copy, connection)
            index.follow(copy)
            until = time.monotonic() + 60
            while not self._current(index, built):
                if time.monotonic() > until:
                    return [*wrong, "the next start does not catch up in a minute"]
                time.sleep(0.01)
            if (actual := answers(index)) != expected:
                differ = [
                    i
                    for i, pair in enumerate(zip(actual, expected, strict=True))
                    if pair[0] != pair[1]
                ]
                wrong.append(f"answers {differ} differ from those of a fresh build")
        return wrong

    @staticmethod
    def _restore(index: Index, copy: Path, connection: Any) -> bool:
        with closing(snapshots.Snapshots(copy)) as kept:
            return index.live.restore(connection, kept.load)

    @staticmethod
    def _current(index: Index, built: Index) -> bool:
        one, other = index.live.state, built.live.state
        assert other is not None
        return one is not None and one.revision == other.revision


def main() -> int:
    if sys.argv[1] == "--follow":
        follow(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
    chosen = arguments(__doc__ or "").parse_args()
    random, failed, restored = Random(chosen.seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        world = None
        for number in range(chosen.count):
            if world is None or world.packages > MOST_PACKAGES:
                if world is not None:
                    restored += world.restored
                    world.close()
                (inner := Path(folder) / str(number)).mkdir()
                world = World(inner, random)

            def work(world: World = world) -> tuple[str, list[str]]:
                how = world.kill()
                return f"{world.packages} packages, killed {how}", world.check()

            failed += attempt(work, number, chosen.verbose)
        assert world is not None
        restored += world.restored
        world.close()
    print(f"{chosen.count} kills; {restored} starts read what was saved, the others built it")
    return conclude(chosen.count, failed)


if __name__ == "__main__":
    sys.exit(main())
