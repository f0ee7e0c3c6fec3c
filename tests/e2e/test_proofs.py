"""Storage proofs of a real registry on a real chain: what holds, and what was touched.

The vectors are recorded anew by: CAPDEX_GOLDEN=write pytest tests/e2e/test_proofs.py -k recorded,
and then: CAPDEX_GOLDEN=write pytest tests/capdex/proof/test_proof_vectors.py
"""

from __future__ import annotations

import itertools
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from capdex.errors import Code, VerificationFailure
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.proofs import Prover
from capdex.proof.document import Proof
from capdex.proof.resolution import check_refusal, check_resolution
from capdex.proof.verify import Anchor, verify
from capdex.uri import CapabilityURI
from capdex.version import Version, latest

RECORDED = Path(__file__).parents[1] / "vectors" / "proofs" / "documents.json"
WRITE = os.environ.get("CAPDEX_GOLDEN") == "write"  # before fixtures clean the environment
LETTERS = "abcdefghjkmnpqrstuvwxyz"  # no two of them look alike
VERSIONS = (
    *(f"{major}.{minor}.0" for major in range(3) for minor in range(4)),
    *("1.0.0-rc.1", "3.0.0-beta", "2.0.0-" + "x" * 24, "2.0.0-" + "x" * 25, "2.0.0-" + "x" * 26),
    *("2.0.0-" + "x" * 27, "0.1.0-" + "y" * 58, "1.2.3", "1.2.4", "10.0.0"),
)
STRING, INDEX = "string", "uint256"


@dataclass(frozen=True)
class Release:
    semver: str
    data: bytes
    yanked: bool = False
    deprecated: bool = False


@dataclass
class Books:
    """A registry on a chain, and beside it what it should keep."""

    registry: Any
    chains: Any
    names: dict[str, list[Release]] = field(default_factory=dict)
    random: random.Random = field(default_factory=lambda: random.Random(11))  # noqa: S311

    def publish(self, releases: list[tuple[str, str]]) -> None:
        """Publish these (name, version), each with bytes of its own."""
        made = [(name, semver, f"{name}@{semver}".encode()) for name, semver in releases]
        self.registry.publish(made)
        for name, semver, data in made:
            self.names.setdefault(name, []).append(Release(semver, data))

    def flag(self, name: str, index: int, function: str) -> str:
        """Yank or deprecate a release; the call that does it."""
        release = self.names[name][index]
        flag = {"yank": "yanked", "deprecate": "deprecated"}[function]
        self.names[name][index] = replace(release, **{flag: True})  # type: ignore[arg-type]
        types = (STRING, STRING, INDEX, STRING)
        call: str = self.chains.call_data(function, types, (name, release.semver, index, "why"))
        return call

    def fill(self, count: int) -> None:
        """Publish 1 to 8 releases of so many names, and yank or deprecate some."""
        names = itertools.islice(itertools.product(LETTERS, LETTERS), count)
        self.publish(
            [
                (f"cap-{''.join(pair)}", semver)
                for pair in names
                for semver in self.random.sample(VERSIONS, self.random.randint(1, 8))
            ]
        )
        every = [(name, i) for name, kept in self.names.items() for i in range(len(kept))]
        yanked, deprecated = (self.random.sample(every, len(every) // 5) for _ in range(2))
        self.registry.send(
            [self.flag(*x, "yank") for x in yanked]
            + [self.flag(*x, "deprecate") for x in deprecated]
        )

    def head(self) -> tuple[int, bytes]:
        """Number and hash of the newest block."""
        block = self.registry.call("eth_getBlockByNumber", "latest", False)
        return int(block["number"], 16), bytes.fromhex(block["hash"][2:])

    def anchor(self) -> Anchor:
        """What somebody trusts who knows the newest block."""
        return Anchor(31337, bytes.fromhex(self.registry.address[2:]), self.head()[1])

    def answer(self, name: str, semver: str | None = None) -> dict[str, Any] | None:
        """What an honest node answers to the latest or to a version; None where that is nothing."""
        kept = self.names.get(name, [])
        if semver is None:
            live = {Version.parse(x.semver): x for x in kept if not x.yanked}
            best = latest(live)
            release = None if best is None else live[best]
        else:
            release = next((x for x in kept if x.semver == semver), None)
        if release is None:
            return None
        cid = self.chains.Cid.of(release.data)
        return {
            "cap_uri": f"did:nuwa:cap:{name}@{release.semver}",
            "semver": release.semver,
            "sha256": cid.digest.hex(),
            "ipfs_cid": cid.text,
            "status": {
                "yanked": release.yanked,
                "deprecated": release.deprecated,
                "name_deprecated": False,
            },
        }


@pytest.fixture
def books(anvil: Any, chains: Any) -> Books:
    """An empty registry."""
    return Books(chains.Registry.deploy(anvil.url), chains)


@pytest.fixture
async def endpoint(anvil: Any) -> Any:
    async with Rpc([anvil.url]) as opened:
        yield opened


@pytest.fixture
def prover(books: Books, endpoint: Rpc) -> Prover:
    return prover_of(endpoint, books.registry)


def prover_of(rpc: Rpc, registry: Any) -> Prover:
    return Prover(rpc, chain_id=31337, contract=bytes.fromhex(registry.address[2:]))


def uri(name: str, semver: str | None = None) -> CapabilityURI:
    return CapabilityURI(name, None if semver is None else Version.parse(semver))


def check(document: Any, anchor: Anchor, wanted: CapabilityURI, answer: Any, kept: Any) -> None:
    """Check an honest answer or refusal; raises VerificationFailure."""
    if answer is not None:
        check_resolution(document, anchor, wanted, answer)
    elif wanted.selector is None and kept:
        check_refusal(document, anchor, wanted, Code.YANKED)
    else:
        check_refusal(document, anchor, wanted, Code.NOT_FOUND)


async def test_what_a_registry_keeps_is_proven(books: Books, prover: Prover) -> None:
    """100 existences, 100 absences, 50 lists."""
    books.fill(50)
    anchor, (head, _) = books.anchor(), books.head()
    every = [(name, x) for name, kept in books.names.items() for x in kept]
    for name, release in books.random.sample(every, 100):
        document = await prover.prove(name, Version.parse(release.semver), head)
        (proven,) = verify(Proof.parse(document), anchor).releases
        assert (proven.yanked, proven.deprecated) == (release.yanked, release.deprecated)
        check_resolution(
            document, anchor, uri(name, release.semver), books.answer(name, release.semver) or {}
        )
    for i, name in enumerate(books.random.choices(list(books.names), k=100)):
        absent = f"7.{i}.0" if i % 3 else "7.0.0-" + "z" * (20 + i % 30)
        wanted = uri(name if i % 2 else f"free-{LETTERS[i % 23]}", absent)
        document = await prover.prove(wanted.name, wanted.version, head)
        assert verify(Proof.parse(document), anchor).releases == ()
        check_refusal(document, anchor, wanted, Code.NOT_FOUND)
    for name, kept in books.names.items():
        document = await prover.prove(name, None, anchor.block_hash)
        proven_all = verify(Proof.parse(document), anchor)
        assert [(str(x.version), x.yanked, x.deprecated) for x in proven_all.releases] == [
            (x.semver, x.yanked, x.deprecated) for x in kept
        ]
        assert proven_all.record is not None
        assert proven_all.record.owner == books.registry.publisher
        check(document, anchor, uri(name), books.answer(name), kept)
    assert len(books.names) == 50


async def test_a_thousand_documents_that_were_touched_are_refused(
    books: Books, prover: Prover, endpoint: Rpc, tampering: Any
) -> None:
    books.fill(12)
    other = Books(books.chains.Registry.deploy(books.registry.url), books.chains)
    other.publish([(name, "1.0.0") for name in books.names])
    before, _ = books.head()
    books.publish([(name, "20.0.0") for name in books.names])
    anchor, (head, _) = books.anchor(), books.head()
    elsewhere = prover_of(endpoint, other.registry)

    async def cases() -> list[tuple[Any, CapabilityURI, Any]]:
        found = []
        for name, kept in books.names.items():
            longest = max(kept, key=lambda x: len(x.semver)).semver
            for semver in (None, kept[0].semver, longest, "8.8.8"):
                version = None if semver is None else Version.parse(semver)
                case = tampering.Case(
                    await prover.prove(name, version, head),
                    await prover.prove(name, version, before),
                    await elsewhere.prove(name, version, head),
                    next(x for x in books.names if x != name),
                    books.random,
                )
                found.append((case, uri(name, semver), books.answer(name, semver)))
        return found

    counted: Counter[str] = Counter()
    every = await cases()
    for case, wanted, answer in every:
        check(case.document, anchor, wanted, answer, books.names[wanted.name])
    for i in range(1000):
        case, wanted, answer = every[i % len(every)]
        kinds = tampering.kinds_for(case.document)
        kind = min(kinds, key=lambda x: (counted[x], x))  # each as often as every other
        counted[kind] += 1
        document = tampering.tampered(kind, case)
        with pytest.raises(VerificationFailure) as caught:
            check(document, anchor, wanted, answer, books.names[wanted.name])
        assert caught.value.code is Code.BAD_PROOF, kind
    assert counted.total() == 1000
    assert min(counted[kind] for kind in tampering.KINDS) >= 10


async def test_a_list_that_withholds_a_release_is_refused(
    books: Books, prover: Prover, tampering: Any
) -> None:
    """50 names whose newest release a node would rather not tell of, each in every way."""
    books.fill(50)
    old_answers = {name: books.answer(name) for name in books.names}
    before, _ = books.head()
    books.publish([(name, "20.0.0") for name in books.names])
    anchor, (head, _) = books.anchor(), books.head()
    refused = 0
    for name, old in old_answers.items():
        current = await prover.prove(name, None, head)
        older = await prover.prove(name, None, before)
        case = tampering.Case(current, older, older, "other", books.random)
        lies = [older, current]  # an old block, and the present one with the old answer
        lies += [
            tampering.tampered(kind, case)
            for kind in ("list_shortened", "newest_left_out", "header_of_an_older_block",
                         "everything_of_an_older_block", "slot_of_another_block")
        ]  # fmt: skip
        mixed = {**older, "header": current["header"]}
        mixed |= {key: current[key] for key in ("block_number", "block_hash", "account_proof")}
        for lie in (*lies, mixed):
            with pytest.raises(VerificationFailure) as caught:
                check(lie, anchor, uri(name), old, books.names[name])
            assert caught.value.code is Code.BAD_PROOF
        if old is not None:  # a proof that the old release exists holds, and does not help
            existence = await prover.prove(name, Version.parse(old["semver"]), head)
            check_resolution(existence, anchor, uri(name, old["semver"]), old)
            with pytest.raises(VerificationFailure):
                check_resolution(existence, anchor, uri(name), old)
        check_resolution(current, anchor, uri(name), books.answer(name) or {})
        refused += 1
    assert refused == 50


async def test_the_recorded_documents_are_those_of_a_chain(
    books: Books, prover: Prover, endpoint: Rpc
) -> None:
    """Records tests/vectors/proofs/documents.json, or sees that this contract still gives it."""
    other = Books(books.chains.Registry.deploy(books.registry.url), books.chains)
    other.publish([("weather", "1.0.0")])
    long = "2.0.0-" + "x" * 27
    books.publish([("weather", x) for x in ("1.0.0", "1.1.0", long, "1.2.0")])
    books.registry.send([books.flag("weather", 1, "deprecate"), books.flag("weather", 3, "yank")])
    books.publish([("note", f"1.{i}.0") for i in range(40)])
    older, _ = books.head()
    old_answer = books.answer("weather")
    books.publish([("weather", "1.3.0")])
    head, block_hash = books.head()
    asked = {
        "list": (prover, uri("weather"), head),
        "exact": (prover, uri("weather", "1.1.0"), head),
        "yanked": (prover, uri("weather", "1.2.0"), head),
        "long": (prover, uri("weather", long), head),
        "absent": (prover, uri("weather", "7.0.0"), head),
        "free": (prover, uri("nobody"), head),
        "older": (prover, uri("weather"), older),
        "elsewhere": (prover_of(endpoint, other.registry), uri("weather"), head),
    }
    documents: dict[str, Any] = {}
    for name, (by, wanted, block) in asked.items():
        version = None if wanted.selector is None else wanted.version
        documents[name] = {
            "uri": str(wanted),
            "answer": old_answer
            if name == "older"
            else books.answer(wanted.name, str(version) if version else None),
            "document": await by.prove(wanted.name, version, block),
        }
    made = {
        "chain_id": 31337,
        "contract": books.registry.address,
        "block_hash": "0x" + block_hash.hex(),
        "documents": documents,
    }
    if WRITE:
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    recorded = json.loads(RECORDED.read_text("utf-8"))
    assert _timeless(recorded) == _timeless(made)


def _timeless(recorded: Any) -> Any:
    """What is the same on every run: not the times of blocks, and so not their hashes."""
    return {
        name: [
            *(case["uri"], case["answer"], case["document"]["contract"]),
            [(slot["key"], slot["value"], slot["proof"]) for slot in case["document"]["slots"]],
        ]
        for name, case in recorded["documents"].items()
    }


async def test_a_user_checks_a_node_by_another_endpoints_word(
    shell: Any, begin: Callable[..., Any], anvil: Any
) -> None:
    author = begin(shell, f"dir:{shell / 'blocks'}")
    author.start_node("sqlite:///index.db")
    for version in ("0.1.0", "0.2.0"):
        path = author.write("weather", version=version)
        shell("publish", path.name, "--yes")
        path.unlink()
    second = anvil.url.replace("127.0.0.1", "localhost")
    proof = ("--proof", "--trust-rpc", second)

    latest_ = shell.json("resolve", "weather", *proof)
    assert latest_["semver"] == "0.2.0"
    statement = latest_["proven"]["statement"]
    assert "did:nuwa:cap:weather@0.2.0 is the latest of 2 releases at block" in statement
    assert statement.endswith(f"by the block hash that {second} gave")
    Proof.parse(latest_["proof"])
    exact = shell.json("resolve", "weather@0.1.0", *proof)
    assert "weather@0.1.0 exists with this sha256" in exact["proven"]["statement"]
    at = shell.json("resolve", "weather", "--trust-block", exact["proven"]["block_hash"])
    assert at["proven"]["by"] == "the block hash you gave"

    for missing, said in (("nobody", "nobody is not claimed"), ("weather@^7", "none of 2")):
        done = shell("resolve", missing, *proof, code=1)
        assert "error[NOT_FOUND]" in done.stderr
        assert said in done.stderr
    told = shell.error("resolve", "weather", "--trust-block", "0x" + "11" * 32, code=1)
    assert told["code"] == "INVALID_INPUT"
    assert "has no block" in told["what"]
    same = shell("resolve", "weather", "--proof", "--trust-rpc", anvil.url)
    assert "only shows that they agree" in same.stderr

    # a host that starts its server itself: nothing but MCP may be said on stdout
    anchor = Anchor(
        31337,
        bytes.fromhex(author.registry[2:]),
        bytes.fromhex(latest_["proven"]["block_hash"][2:]),
    )
    for url, failed in ((anvil.url, False), ("http://127.0.0.1:1", True)):
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "capdex", "mcp", "--db", "sqlite:///index.db", "--rpc-url", url],
            cwd=shell.folder,
        )
        with (shell / "stderr").open("w") as errors:
            async with Client(stdio_client(command, errlog=errors)) as client:
                result = await client.call_tool(
                    "resolve_capability", {"cap_uri": "did:nuwa:cap:weather", "proof": "list"}
                )
        assert result.is_error is failed
        answer = result.structured_content
        assert answer is not None
        if failed:
            assert answer["code"] in ("STALLED", "TIMEOUT")
        else:
            check_resolution(answer["proof"], anchor, uri("weather"), answer)
