"""Latency, memory and building of the search, through what a node answers a client with.

    python benchmarks/search/latency.py [--packages 100000] [--keep DIRECTORY] [--semantic]

With `--starts` it tells how long a build and three restarts take, and asks nothing.

"Found" is the page of ten hits as the index finds it; "answered" has their releases, which are read
from SQLite, as JSON and as text, from one thread to another.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from texts import describe, questions

from capdex.problems import Verdict
from capdex.search.semantic import Encoder
from capdex_indexer.query.index import Index
from capdex_indexer.query.search.filters import SearchFilters
from capdex_indexer.query.search.mapped_encoder import MappedEncoder
from capdex_indexer.query.search.snapshots import directory_of
from capdex_service.queries.reader import Reader
from capdex_service.queries.route import route
from capdex_service.queries.search import SearchRequest, search

sys.path.append(str(Path(__file__).resolve().parents[1] / "service"))
from filled import fill, make

VERIFIED = frozenset({Verdict.VERIFIED})
FILTERS = {"tag": ["miles", "recipes", "flights"], "not": {"tag": "trains"}}


def memory_mb() -> tuple[float, float]:
    """The resident memory of this process, and what of it are files, which processes share."""
    pages = Path("/proc/self/statm").read_text("ascii").split()
    return int(pages[1]) * 4096 / 1e6, int(pages[2]) * 4096 / 1e6


async def times(reader: Reader, asked: Iterable[str], filters: SearchFilters) -> list[float]:
    """Milliseconds of each question, sorted."""
    found = []
    for question in asked:
        begin = time.perf_counter()
        await search(reader, SearchRequest(question, filters))
        found.append((time.perf_counter() - begin) * 1000)
    return sorted(found)


def found_in(index: Index, asked: Iterable[str], filters: SearchFilters) -> list[float]:
    """Milliseconds of each question to the index itself, sorted."""
    found = []
    revision = index.live.state.revision if index.live.state else None
    for question in asked:
        begin = time.perf_counter()
        index.find(question, filters, limit=10, revision=revision)
        found.append((time.perf_counter() - begin) * 1000)
    return sorted(found)


async def routed(reader: Reader, asked: Iterable[str]) -> list[float]:
    """Milliseconds of each message, sorted."""
    found = []
    for message in asked:
        begin = time.perf_counter()
        await route(reader, message)
        found.append((time.perf_counter() - begin) * 1000)
    return sorted(found)


def show(what: str, found: list[float]) -> None:
    p50, p99 = found[len(found) // 2], found[len(found) * 99 // 100]
    print(f"{what:34} p50 {p50:7.2f}   p99 {p99:7.2f}   most {found[-1]:7.2f} ms")


def hostile(packages: int) -> dict[str, str]:
    """Queries that are as much work as one of 4 096 characters can be."""
    common = " ".join(describe(number) for number in range(packages, packages + 400)).split()
    most = sorted(set(common), key=common.count, reverse=True)
    return {
        "the 80 commonest words": " ".join(most[:80]),
        "2 000 one-letter terms": " ".join(chr(0x4E00 + i) for i in range(2000)),
        "4 096 characters of words": " ".join(most)[:4096],
        "600 misspelt words": " ".join(word[::-1] for word in most)[:4096],
        "one beginning": "tra",
        "4 096 equal characters": "a" * 4096,
        "characters of scripts without spaces": "".join(chr(0x4E00 + i * 5) for i in range(4000)),
    }


async def start(url: str, directory: Path, encoder: Encoder | None, packages: int) -> None:
    begin, before = time.perf_counter(), memory_mb()
    with closing(Index(url)) as index, closing(Reader(index, serve=VERIFIED)) as reader:
        index.follow(directory, encoder)
        while index.live.state is None:  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.1)
        print(f"searches and routes after {time.perf_counter() - begin:.1f} s")
        while encoder is not None and index.live.state.engine.unencoded(1):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        print(f"complete after {time.perf_counter() - begin:.1f} s")
        more, files = (now - then for now, then in zip(memory_mb(), before, strict=True))
        print(f"memory: {more:.0f} MB more, {files:.0f} MB of them of files")
        if packages:
            await measure(index, reader, packages)


async def measure(index: Index, reader: Reader, packages: int) -> None:
    asked = questions(packages)
    for some in asked.values():
        found_in(index, some[:100], SearchFilters())  # reads no release: the cards are kept
    chosen = SearchFilters.parse(FILTERS)
    for name, filters in {"found": SearchFilters(), "found, filtered": chosen}.items():
        for kind, some in asked.items():
            show(f"{kind}, {name}", found_in(index, some, filters))
    for name, filters in {"answered": SearchFilters(), "answered, filtered": chosen}.items():
        for kind, some in asked.items():
            show(f"{kind}, {name}", await times(reader, some, filters))
    for kind, some in asked.items():
        show(f"{kind}, routed", await routed(reader, some))
    for kind, query in hostile(packages).items():
        show(kind, await times(reader, [query] * 5, SearchFilters()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packages", type=int, default=100_000)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--semantic", action="store_true")
    parser.add_argument("--starts", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as temporary:
        kept = options.keep or Path(temporary)
        kept.mkdir(parents=True, exist_ok=True)
        path = kept / f"{options.packages}.db"
        url = f"sqlite:///{path}"
        if not path.exists():
            begin = time.perf_counter()
            fill([url], asyncio.run(make(options.packages, describe)), kept / "blocks")
            print(f"filled in {time.perf_counter() - begin:.0f} s")
        directory = directory_of(url, kept / "blocks")
        asked = 0 if options.starts else options.packages
        for _ in range(4 if options.starts else 2):  # built, then read from the disk
            encoder = MappedEncoder(directory) if options.semantic else None
            asyncio.run(start(url, directory, encoder, asked))
        size = sum(x.stat().st_size for x in directory.iterdir())
        print(f"on disk: {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
