"""python benchmarks/explorer [PART …]: how quickly pages are made, and what they cost the indexer.

Parts: `render` (each kind of page at NAMES packages, in this process, nothing kept), `beside`
(PAGES pages a second from a node that indexes new releases, and how fresh its index is then) and
`phone` (eight pages in Lighthouse, on a simulated phone).
"""

# ruff: noqa: S311 - a script prints; random numbers here are not secret
from __future__ import annotations

import asyncio
import os
import platform
import random
import re
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import quote

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(HERE.parent / "service"), str(ROOT / "tests" / "soak"), str(ROOT)]
import filled  # noqa: E402
from author import Author  # noqa: E402
from client import Load, client  # noqa: E402
from nodes import Nodes, anvil, wait_until  # noqa: E402
from phone import phone  # noqa: E402

from capdex.errors import Unavailable  # noqa: E402
from capdex.net.ipfs.block_store import BlockDirectory  # noqa: E402
from capdex.problems import Verdict  # noqa: E402
from capdex_cli.node.explorer import build_explorer  # noqa: E402
from capdex_explorer.http.answer import Answers  # noqa: E402
from capdex_explorer.http.routes import PAGES as KINDS  # noqa: E402
from capdex_explorer.site import PageRequest, Site  # noqa: E402
from capdex_indexer.http.status import Surface  # noqa: E402
from capdex_indexer.monitoring.health import Health  # noqa: E402
from capdex_indexer.query.index import Index  # noqa: E402
from capdex_service.queries.reader import Reader  # noqa: E402

NAMES = int(os.environ.get("NAMES", "100000"))
EACH = int(os.environ.get("EACH", "300"))  # pages of each kind
ROUNDS = int(os.environ.get("ROUNDS", "3"))
RATE = float(os.environ.get("PAGES", "200"))  # pages a second
RELEASES = 400  # that the index beside has at first
PUBLICATIONS = 200
CONNECTIONS = 16
BASE = "http://127.0.0.1:8765"


def questions(dice: random.Random) -> dict[str, Callable[[], tuple[str, dict[str, str], str]]]:
    """What is asked for each kind of page: its route, the parts of its path, and its query."""

    def name() -> str:
        return filled.words_of(dice.randrange(NAMES))[0]

    def of_name(route: str, query: str = "") -> Callable[[], tuple[str, dict[str, str], str]]:
        return lambda: (route, {"name": name(), "version": filled.VERSION}, query)

    def words(count: int) -> str:
        picked = [dice.choice(filled.VERBS + filled.NOUNS) for _ in range(count)]
        return f"q={quote(' '.join(picked))}"

    page = "/c/{name}/{version}"
    return {
        "package": of_name(page),
        "tools": of_name(f"{page}/tools"),
        "prompt and state": of_name(f"{page}/texts"),
        "exact bytes": of_name(f"{page}/bytes"),
        "checks": of_name(f"{page}/checks"),
        "triggers": of_name(f"{page}/triggers", "message=convert+miles"),
        "versions": of_name("/c/{name}/versions"),
        "history": of_name("/c/{name}/history"),
        "search, one word": lambda: ("/search", {}, words(1)),
        "search, three words": lambda: ("/search", {}, words(3)),
        "browse": lambda: ("/browse", {}, ""),
        "newest": lambda: ("/recent", {}, ""),
        "codes": lambda: ("/help", {}, ""),
    }


async def render(folder: Path) -> None:
    """Make pages of each kind from an index of NAMES packages, and print how long each takes."""
    url, blocks = f"sqlite:///{folder / 'index.db'}", folder / "blocks"
    filled.fill([url], await filled.make(NAMES), blocks)
    index = Index(url)
    reader = Reader(index, serve=frozenset({Verdict.VERIFIED}), blocks=BlockDirectory(blocks))
    explorer = build_explorer(reader, Surface(index, BlockDirectory(blocks), Health()))
    answers, site = explorer.answers, explorer.site
    dice = random.Random(1)
    while True:  # the search is built in the background
        try:
            await one_page(site, answers, "/search", {}, "q=miles")
            break
        except Unavailable:
            await asyncio.sleep(1)
    whole: list[float] = []
    rendering: list[float] = []
    print(f"\n### Pages at {NAMES} packages, in one process, nothing kept\n")
    print("| page | rendered, p50 ms | p99 | with its queries, p50 ms | p99 | compressed, kB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for kind, ask in questions(dice).items():
        made = [await one_page(site, answers, *ask()) for _ in range(EACH)]
        found_ms, rendered_ms, sizes = zip(*made, strict=True)
        all_ms = [a + b for a, b in zip(found_ms, rendered_ms, strict=True)]
        whole += all_ms
        rendering += rendered_ms
        print(f"| {kind} | {both(rendered_ms)} | {both(all_ms)} | {max(sizes) / 1000:.1f} |")
    print(f"| **all** | {both(rendering)} | {both(whole)} | |")
    reader.close()
    index.close()


async def one_page(
    site: Site, answers: Answers, route: str, parts: dict[str, str], query: str
) -> tuple[float, float, int]:
    """Make one page as its endpoint does.

    Returns the milliseconds of its queries, and of its template with the compression, and its
    compressed bytes.
    """
    started = time.perf_counter()
    request = PageRequest.read(route.format(**parts), parts, query.encode(), BASE)
    view = await KINDS[route](site, request)
    between = time.perf_counter()
    size = len(answers.render(view, request, as_json=False).packed)
    return (between - started) * 1000, (time.perf_counter() - between) * 1000, size


def both(times: Iterable[float]) -> str:
    """The median and the 99th percentile, as two cells of a row."""
    ordered = sorted(times)
    return f"{ordered[len(ordered) // 2]:.2f} | {ordered[len(ordered) * 99 // 100]:.2f}"


def beside() -> None:
    """Publish beside pages and without them, and print how fresh the index is in both."""
    print(f"\n### {PUBLICATIONS} publications, without pages and beside {RATE:g} pages a second\n")
    print("| | fresh after, p50 ms | p95 | pages a second | page p50, ms | p99 | errors |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for number in range(ROUNDS):
        for paged in (False, True):
            print(one_round(f"round {number + 1}, {'pages' if paged else 'alone'}", paged))


def one_round(what: str, paged: bool) -> str:
    dice = random.Random(2)
    with ExitStack() as parts:
        url = parts.enter_context(anvil("--gas-limit", "1000000000"))
        nodes = parts.enter_context(Nodes.open())
        author = Author.begin(url, nodes.folder / "blocks", random.Random(3))
        author.fill(RELEASES)
        path = nodes.folder / "index.db"
        node = nodes.start(
            "--rpc-url", url, "--chain-id", "31337", "--registry", author.registry.address,
            "--db", f"sqlite:///{path}", "--ipfs", f"dir:{author.blocks.path}",
            "--blocks", str(nodes.folder / "kept"), "--no-semantic",
        )  # fmt: skip
        port = node.wait_for(lambda: port_in(node.said), "it listened")
        reader = parts.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
        wait_until(lambda: stored(reader) and judged(reader), "the index was complete")
        took: list[float] = []
        pages = None
        if paged:
            asker = parts.enter_context(client())
            asked, seconds = requests(author), PUBLICATIONS * 0.1
            asker.put(Load(port, asked, 2, 3600.0, count=len(asked)))  # as a node that has run
            load = Load(port, asked, CONNECTIONS, seconds, rate=RATE)
            pages = parts.enter_context(ThreadPoolExecutor()).submit(asker.put, load)
        for _ in range(PUBLICATIONS):
            time.sleep(dice.uniform(0.05, 0.1))
            before, started = stored(reader), time.perf_counter()
            author.send([author.news()])
            wait_until(lambda least=before: stored(reader) > least, "it was stored")  # type: ignore[misc]
            took.append((time.perf_counter() - started) * 1000)
        took.sort()
        said = f"| {what} | {took[len(took) // 2]:.1f} | {took[len(took) * 95 // 100]:.1f} |"
        if pages is None:
            return said + " | | | |"
        outcome = pages.result()
        times = sorted(outcome.times_ms)
        rate, middle, late = len(times) / outcome.seconds, len(times) // 2, len(times) * 99 // 100
        return said + f" {rate:.0f} | {times[middle]:.1f} | {times[late]:.1f} | {outcome.errors} |"


def requests(author: Author) -> list[bytes]:
    """Requests for pages as people look at them, in an order of luck."""
    dice = random.Random(4)
    addresses: Counter[str] = Counter()
    for name, version in author.published:
        addresses |= Counter({f"/c/{name}": 2, f"/c/{name}/versions": 1, f"/c/{name}/history": 1})
        del version
    for word in ("edition", "cap", "what does it do", "edition of cap"):
        addresses[f"/search?q={quote(word)}"] = 8
    addresses |= Counter({"/": 10, "/recent": 5, "/browse": 5, "/node": 5})
    found = [
        f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\n"
        "Accept-Encoding: gzip\r\n\r\n".encode()
        for address in addresses.elements()
    ]
    dice.shuffle(found)
    return found


def port_in(log: str) -> int:
    """The port that a node's log names; 0 before it listens."""
    found = re.search(
        r"http://127\.0\.0\.1:(\d+)[^\n]*listening|listening[^\n]*http://127\.0\.0\.1:(\d+)", log
    )
    return int(found[1] or found[2]) if found else 0


def stored(reader: sqlite3.Connection) -> int:
    (count,) = reader.execute("SELECT coalesce(max(sequence), 0) FROM event").fetchone()
    return int(count)


def judged(reader: sqlite3.Connection) -> bool:
    (waiting,) = reader.execute(
        "SELECT count(*) FROM release WHERE availability = 'pending'"
    ).fetchone()
    return not waiting


def main(parts: list[str]) -> None:
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} before"
    )
    if "render" in parts:
        with tempfile.TemporaryDirectory(prefix="pages-") as folder:
            asyncio.run(render(Path(folder)))
    if "beside" in parts:
        beside()
    if "phone" in parts:
        phone()


if __name__ == "__main__":
    parts = ["render", "beside", "phone"]
    if unknown := set(sys.argv[1:]) - set(parts):
        sys.exit(
            f"no part of this benchmark: {', '.join(sorted(unknown))}; there are {', '.join(parts)}"
        )
    main(sys.argv[1:] or parts)
