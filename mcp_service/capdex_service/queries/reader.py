"""The reader of a node: an index, the verified packages behind it, and the answers that are kept.

Answers are rendered in a thread and kept as bytes; what the writer changes is dropped as soon as
its commit is seen, so a cached answer is never older than the index.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Protocol, TypeVar

from sqlalchemy import Connection

from capdex.errors import CapdexError, Code, Unavailable
from capdex.ipld.cid import Cid
from capdex.ipld.unixfs import Assembly
from capdex.json import object_of
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.manifest.resources import Resource
from capdex.net.ipfs.block_store import BlockDirectory, files_of
from capdex.problems import Verdict
from capdex.uri import CapabilityURI
from capdex.version import Version
from capdex.yaml import read_yaml
from capdex_indexer.query import resolution
from capdex_indexer.query.changes import read_changes
from capdex_indexer.query.index import Index
from capdex_indexer.query.release import IndexedRelease, read_tools
from capdex_indexer.query.search.page import read_listed
from capdex_indexer.query.status import read_revision
from capdex_service.answers.card import Card
from capdex_service.answers.rendered import Answer, Moment, Rendered
from capdex_service.queries.answer_cache import AnswerCache

T = TypeVar("T")


class StorageProver(Protocol):
    """Makes proofs of the registry's storage; `capdex.net.rpc.proofs` does so by an endpoint."""

    async def prove(self, name: str, version: Version | None, block: int | bytes) -> dict[str, Any]:
        """Return the proof of one version, or of all releases, of a name at a block."""
        ...


POLL_S: Final = 0.05  # how old the moment may be on PostgreSQL, where looking costs a query
MAX_CARDS: Final = 20_000  # kept of search hits: some 40 MB
MAX_CHANGES: Final = 2000  # more changed names than this between two looks: drop everything
THREADS: Final = 4  # on PostgreSQL; SQLite answers fastest from one thread


@dataclass(frozen=True, slots=True)
class Package:
    """The bytes of a release's package, which match the chain, and the parsed document."""

    data: bytes
    document: dict[str, Any]


class Reader:
    """Everything that answers are made from; `close` it at the end.

    `serve`: the verdicts that may be answered. `blocks`: the verified packages; without them,
    answers have no package content. `warning` returns why the index may not be up to date.
    """

    def __init__(
        self,
        index: Index,
        *,
        serve: frozenset[Verdict],
        blocks: BlockDirectory | None = None,
        prover: StorageProver | None = None,
        warning: Callable[[], str | None] = lambda: None,
    ) -> None:
        self.index, self.serve, self.blocks, self.prover = index, serve, blocks, prover
        self.warning = warning
        self.cache = AnswerCache()
        self._cards: dict[str, Card] = {}
        self._likes_of: object = self  # the state of the search that `_original` asks
        self._original: Callable[[str], str | None]
        self._listeners: list[Callable[[Sequence[str] | None], None]] = []
        self._watch = index.watch()
        count = 1 if self._watch.immediate else THREADS
        self._short = ThreadPoolExecutor(count, thread_name_prefix="resolve")
        self._long = ThreadPoolExecutor(count, thread_name_prefix="search")
        self._token: int | None = None
        self._looked_at = 0.0
        self._looked_now = False  # in this turn of the loop
        self._moment: Moment | None = None
        self._looking = asyncio.Lock()

    def close(self) -> None:
        """End the threads and give the connections back."""
        self._short.shutdown()
        self._long.shutdown()
        self._watch.close()

    def on_change(self, listener: Callable[[Sequence[str] | None], None]) -> None:
        """Call `listener` with the names that a commit changed, with None where all may have."""
        self._listeners.append(listener)

    async def run(self, work: Callable[..., T], *given: object, long: bool = False) -> T:
        """Run blocking work in threads, `long` work in others; a cancellation waits for neither."""
        executor = self._long if long else self._short
        return await asyncio.get_running_loop().run_in_executor(executor, partial(work, *given))

    async def moment(self) -> Moment:
        """Return the state of the index now; drop the cached answers that are older."""
        if self._moment is None or self._is_old():
            async with self._looking:
                if self._moment is None or self._is_old():
                    await self._look()
        assert self._moment is not None  # noqa: S101 - `_look` sets it
        return self._moment

    async def wait(self, seen: int) -> Moment:
        """Wait until every process of the node answers with another revision than `seen`.

        It is a lower one if another index took the place of this one.
        """
        while (moment := await self.moment()).revision == seen:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)  # commits come from another process
        if not self._watch.immediate:
            await asyncio.sleep(POLL_S)  # another worker may have looked just before the commit
        return moment

    def answer_now(self, question: str) -> Answer | None:
        """Return the cached answer to a question if it can be given without waiting."""
        if self._moment is None or self._is_old():
            return None
        rendered = self.cache.get(question)
        return None if rendered is None else self.tell(rendered, self._moment)

    async def answer(
        self, question: str, make: Callable[[Connection], tuple[str, Rendered]]
    ) -> Answer:
        """Return the cached answer to a question, or make it in one transaction.

        `make` returns the name that the answer is about, too: its next change drops the answer.
        """
        moment = await self.moment()
        rendered = self.cache.get(question)
        if rendered is None:
            made_at, (name, rendered) = await self.run(self._make, make)
            # Another request may have seen a later commit meanwhile, and dropped what it changed.
            if self._moment is not None and made_at.revision == self._moment.revision:
                self.cache.put(question, name, rendered)
            moment = made_at
        return self.tell(rendered, moment)

    def tell(self, rendered: Rendered, moment: Moment) -> Answer:
        """Return an answer of a moment, with what its name is like."""
        return rendered.answer(moment, self.warning(), self.like(rendered.name))

    def like(self, name: str) -> str | None:
        """Return the older name of another owner that a name is like; None until search has it."""
        if (state := self.index.live.state) is not self._likes_of:
            find = state.engine.original if state else lambda name: None
            self._original, self._likes_of = lru_cache(MAX_CARDS)(find), state
        return self._original(name)

    async def cards(self, names: Sequence[str]) -> dict[str, Card]:
        """Return the cards of those of these names that are listed, kept ones where there are."""
        cards = {name: card for name in names if (card := self._cards.get(name)) is not None}
        if missing := [name for name in names if name not in cards]:
            made_at, made = await self.run(self._make, partial(read_cards, names=missing))
            cards |= made
            if self._moment is not None and made_at.revision == self._moment.revision:
                self._cards |= made
                while len(self._cards) > MAX_CARDS:
                    del self._cards[next(iter(self._cards))]
        return cards

    def resolve(self, connection: Connection, uri: CapabilityURI) -> IndexedRelease:
        """Return the release that a URI means; raises the errors of `Index.resolve`."""
        denials = self.index.denial_cache.read(connection)
        return resolution.resolve(connection, uri, self.serve, denials)

    def package_of(self, release: IndexedRelease) -> Package:
        """Return the package of a release that may be served; raises Unavailable PENDING."""
        data = self.file_of(release)
        return Package(data, object_of(read_yaml(data).value))

    def file_of(self, release: IndexedRelease) -> bytes:
        """Return the bytes of a release that may be served; raises Unavailable PENDING."""
        data = self._read(Cid.parse(release.cid), self.blocks)
        if data is None:
            said = {"cap_uri": release.cap_uri, "ipfs_cid": release.cid, "sha256": release.sha256}
            raise Unavailable(
                f"this node does not hold the package of {release.cap_uri}",
                Code.PENDING,
                fix=f"fetch {release.cid} from IPFS, or ask another node",
                details=said,
            )
        return data

    def uri_of(self, cid: Cid) -> CapabilityURI | None:
        """Return the URI that the package of a CID says; None if no package is held under it."""
        try:
            document: Any = read_yaml(self._read(cid, self.blocks) or b"").value
            return CapabilityURI.exact(document["metadata"]["id"])
        except (CapdexError, LookupError, TypeError, AttributeError):
            return None

    def resource(self, wanted: Resource) -> bytes | None:
        """Return the bytes of a package's file, checked; None if this node does not hold them."""
        kept = self.blocks and files_of(self.blocks)
        data = self._read(wanted.cid, kept, wanted.size)
        digest = hashlib.sha256(data or b"").digest()
        return data if digest == wanted.sha256 else None  # each block was hashed, too

    async def read(self, work: Callable[..., T], *given: object, long: bool = False) -> T:
        """Run a query in a thread, in one transaction, which is its first argument."""
        return await self.run(self._in_transaction, work, *given, long=long)

    def _in_transaction(self, work: Callable[..., T], *given: object) -> T:
        with self.index.read() as connection:
            return work(connection, *given)

    def _read(
        self, cid: Cid, blocks: BlockDirectory | None, most_bytes: int = MAX_PACKAGE_BYTES
    ) -> bytes | None:
        """Return the file of a CID from the blocks, each of which is hashed when it is read."""
        if blocks is None:
            return None
        assembly = Assembly(cid, most_bytes)
        try:
            while (wanted := assembly.wanted) is not None:
                block = blocks.read(wanted)
                if block is None:
                    return None
                assembly.give(block)
        except CapdexError:
            return None
        return assembly.data

    def _make(self, make: Callable[[Connection], T]) -> tuple[Moment, T]:
        with self.index.read() as connection:
            return Moment.of(*read_revision(connection)), make(connection)

    def _is_old(self) -> bool:
        if not self._watch.immediate:
            return time.monotonic() - self._looked_at > POLL_S
        if not self._looked_now:
            if self._watch.token() != self._token:
                return True
            # What came before the look needs no other; what comes after it has a later turn.
            self._looked_now = True
            asyncio.get_running_loop().call_soon(self._end_turn)
        return False

    def _end_turn(self) -> None:
        self._looked_now = False

    async def _look(self) -> None:
        """Read the moment, and drop the cached answers about names that have changed since."""
        before, self._looked_at = self._moment, time.monotonic()
        token, moment, changed = await self.run(self._read_moment, before)
        if changed is None or len(changed) > MAX_CHANGES:
            changed = None
            self.cache.clear()
            self._cards.clear()
        else:
            self.cache.drop(changed)
            for name in changed:
                self._cards.pop(name, None)
        for listener in self._listeners:
            listener(changed)
        self._token, self._moment = token, moment

    def _read_moment(self, before: Moment | None) -> tuple[int, Moment, list[str] | None]:
        # The token first: a commit between the two is then seen again by the next look.
        token = self._watch.token() if self._watch.immediate else 0
        with self.index.read() as connection:
            moment = Moment.of(*read_revision(connection))
            if before is None or moment.revision < before.revision:
                return token, moment, None
            if moment.revision == before.revision:
                return token, moment, []
            feed = read_changes(connection, (before.revision, LAST), MAX_CHANGES + 1)
        return token, moment, [change.name for change in feed]


def read_cards(
    connection: Connection, names: Iterable[str], *, full: bool = False
) -> dict[str, Card]:
    """Return the cards of those of these names that are listed."""
    releases = read_listed(connection, names)
    tools = read_tools(connection, [x.sequence for x in releases.values()])
    return {
        name: Card.of(release, tools.get(release.sequence, ()), full=full)
        for name, release in releases.items()
    }


LAST: Final = "\U0010ffff"  # after every name
