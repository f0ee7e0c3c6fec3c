"""Signed packages of made-up names, and indexes of them. All are the same in every run."""

from __future__ import annotations

import hashlib
import multiprocessing
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.pool import Pool
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from capdex import did, signing
from capdex.encoding.abi import checksum_address
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.package import judge
from capdex.problems import Verdict
from capdex.registry.events import Announcement
from capdex.registry.logs import LogHead
from capdex.uri import PREFIX, CapabilityURI
from capdex_indexer.db.heartbeat import Heartbeat
from capdex_indexer.projection.package_rows import Judgement
from capdex_indexer.store import Deployment, Store
from capdex_indexer.sync.log_completeness import check_logs
from capdex_publisher.authoring.scaffold import scaffold
from capdex_publisher.authoring.sign import sign
from capdex_publisher.keys.keystore import DidKey

sys.path.append(str(Path(__file__).resolve().parents[1]))
from packages import ACCOUNT, CHAIN_ID, announce

KEPT = Path(__file__).resolve().parents[2] / ".tools" / "bench-service"
VERSION = "0.1.0"
AT_ONCE = 500  # packages in one piece of work, and in one transaction
VERB_WORDS = (
    "convert find translate summarise plan track compare draw forecast check sort write read "
    "count watch share clean merge book price map mix learn teach trim scan sign store mail "
    "play tag trade tune print lend rent rate repair test measure"
)
NOUN_WORDS = (
    "miles recipes flights invoices meetings weather trains poems taxes photos contracts birds "
    "songs currencies books parcels plants maps novels tickets houses wines letters habits "
    "stars tides menus loans films stocks roads clinics courses charts notes words colours "
    "engines gardens goals hotels jobs lakes masks names offers paints queues ropes seeds"
)
VERBS, NOUNS = VERB_WORDS.split(), NOUN_WORDS.split()

Made = list[tuple[str, str, bytes]]  # name, version, package


def words_of(number: int) -> tuple[str, str, str, str]:
    """Name, verb, noun and another noun of the package of a number."""
    turn, place = divmod(number, len(VERBS) * len(NOUNS))
    verb, noun = VERBS[place % len(VERBS)], NOUNS[place // len(VERBS)]
    other = NOUNS[(place * 7 + 3) % len(NOUNS)]
    return f"{verb}-{noun}" + (f"-{turn}" if turn else ""), verb, noun, other


def describe(number: int) -> str:
    """What the package of a number says that it does."""
    _, verb, noun, other = words_of(number)
    return f"Use it to {verb} {noun}, also together with {other}, in any language."


async def make(count: int, describe: Callable[[int], str] = describe) -> Made:
    """Return `count` signed packages, each of a name of its own; the same in every run.

    They are one package whose texts are exchanged, and whose signature is made anew: a thousand
    times faster than to write and read each.
    """
    private = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
    author = DidKey(did.did_key(private.public_key().public_bytes_raw()), private)
    account = checksum_address(ACCOUNT)
    text = scaffold(
        "its-name",
        title="Its Title",
        description="Its description.",
        keywords=["its verb", "its noun"],
        tags=["its noun", "its other"],
    )
    signed = (await sign(text.encode(), author, chain_id=CHAIN_ID, publisher=account)).decode()
    before, signature, after = re.split("(?<=  signature: )(.*)(?=\n)", signed)
    assert signing.signing_input(signed.encode(), f"{PREFIX}its-name@{VERSION}") == _message(
        f"{PREFIX}its-name@{VERSION}", before + after
    ), signature
    made = []
    for number in range(count):
        name, verb, noun, other = words_of(number)
        texts = {
            "Its Title": f"{verb} {noun}".title(),
            "Its description.": describe(number),
            "its-name": name,
            "its verb": verb,
            "its noun": noun,
            "its other": other,
        }
        head, tail = before, after
        for old, new in texts.items():
            head, tail = head.replace(old, new), tail.replace(old, new)
        message = _message(f"{PREFIX}{name}@{VERSION}", head + tail)
        written = signing.encode_signature(signing.sign_ed25519(private, message))
        made.append((name, VERSION, (head + written + tail).encode()))
    return made


def _message(cap_uri: str, unsigned: str) -> bytes:
    """Return what a package's author signs (P5) without reading the package."""
    digest = hashlib.sha256(unsigned.encode()).hexdigest()
    return signing.DOMAIN + f"{cap_uri}\n{digest}".encode()


def _judge(jobs: list[tuple[int, Announcement, bytes]]) -> list[tuple[int, Judgement]]:
    found = [(release, Judgement.of(judge(said, data))) for release, said, data in jobs]
    assert all(judgement.verdict is Verdict.VERIFIED for _, judgement in found), found[0]
    return found


def fill(urls: Iterable[str], made: Made, blocks: Path) -> None:
    """Announce and judge the packages in each of these databases, and store their blocks."""
    stores = [open_store(url) for url in urls]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        release(stores, made, pool)
    kept = BlockDirectory(blocks)
    for at in range(0, len(made), AT_ONCE):
        kept.keep_many([(Cid.of(data), data) for _, _, data in made[at : at + AT_ONCE]])
    for store in stores:
        store.close()


def release(stores: Sequence[Store], made: Made, pool: Pool) -> None:
    """Announce packages in the next block of each of these indexes, and judge them in a pool."""
    cursor = stores[0].cursor()
    head = cursor.log_head if cursor else LogHead()
    step = announce(made, cursor.block if cursor else None, head.count)
    for store in stores:
        store.append(step, check_logs(step, head))
    of_name = {name: data for name, _, data in made}
    due = stores[0].due(time.time() + 1, len(made))
    jobs = [
        (
            job.release_id,
            job.announcement,
            of_name[CapabilityURI.exact(job.announcement.cap_uri).name],
        )
        for job in due
    ]
    for done in pool.imap(_judge, [jobs[at : at + AT_ONCE] for at in range(0, len(jobs), AT_ONCE)]):
        for store in stores:
            store.record_many(done)


def open_store(url: str) -> Store:
    """Open the store of a benchmark's index."""
    return Store.open(url, Deployment(CHAIN_ID, checksum_address(bytes(20)), 1, bytes(32)))


@contextmanager
def releasing(url: str, made: Made, rate: int) -> Iterator[list[float]]:
    """Publish packages in an index, `rate` a second in blocks of one second, and beat as a writer.

    Returns the seconds that each block took from its announcement to the last verdict.
    """
    over, took = threading.Event(), []

    def write() -> None:
        store = open_store(url)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            for at in range(0, len(made), rate):
                begin = time.monotonic()
                release([store], made[at : at + rate], pool)
                store.beat(Heartbeat(head=1, finalized=1, following=True))
                took.append(time.monotonic() - begin)
                if over.wait(max(0.0, 1 - took[-1])):
                    break
        store.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield took
    finally:
        over.set()
        thread.join()
