"""Answers with a storage proof: what is asked for, at which block, and how it is refused.

The prover is simulated: it tells what it was asked. Real proofs are in tests/e2e/test_proofs.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import mcp
import pytest
from jsonschema import Draft202012Validator
from sqlalchemy import Connection

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable
from capdex.problems import Verdict
from capdex.version import Version
from capdex_indexer.query.index import Index
from capdex_indexer.store import Store
from capdex_service.answers.schemas import RESOLUTION_SCHEMA
from capdex_service.mcp.server import build_server
from capdex_service.queries.reader import Reader

VERIFIED = frozenset({Verdict.VERIFIED})
HASH = "0x" + "ab" * 32


class SimulatedProver:
    """Answers each question with itself, or with an error; `size` adds weight to the answer."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None, int | bytes]] = []
        self.error: CapdexError | None = None
        self.size = 0

    async def prove(self, name: str, version: Version | None, block: int | bytes) -> Any:
        self.asked.append((name, str(version) if version else None, block))
        if self.error is not None:
            raise self.error
        return {"proves": [name, version and str(version)], "weight": "x" * self.size}


@pytest.fixture
def prover() -> SimulatedProver:
    return SimulatedProver()


async def resolve(index: Index, prover: Any, uri: str, **arguments: Any) -> Any:
    """The whole structured content of one call, `failed` and the text beside it."""
    arguments |= {"cap_uri": f"did:nuwa:cap:{uri}", "detail": "full"}
    reader = Reader(index, serve=VERIFIED, prover=prover)
    async with mcp.Client(build_server(reader)) as client:
        result: Any = await client.call_tool("resolve_capability", arguments)
    reader.close()
    content = dict(result.structured_content)
    if not result.is_error:
        Draft202012Validator(RESOLUTION_SCHEMA).validate(content)
    return content, bool(result.is_error), result.content[0].text


async def test_a_proof_is_made_at_the_block_that_the_answer_is_of(
    index: Index, prover: SimulatedProver
) -> None:
    answer, failed, text = await resolve(index, prover, "note", proof="list")
    assert (failed, answer["semver"]) == (False, "1.1.0")
    assert prover.asked == [("note", None, bytes.fromhex(answer["as_of"]["block_hash"][2:]))]
    assert answer["proof"]["proves"] == ["note", None]
    assert text == (await resolve(index, prover, "note"))[2]


@pytest.mark.parametrize(("asked", "semver"), [("note", "1.1.0"), ("note@1.0.1", "1.0.1")])
async def test_an_exact_proof_is_of_the_release_answered(
    index: Index, prover: SimulatedProver, asked: str, semver: str
) -> None:
    await resolve(index, prover, asked, proof="exact")
    assert prover.asked[0][:2] == ("note", semver)


@pytest.mark.parametrize(
    ("given", "block"),
    [
        (HASH, bytes.fromhex(HASH[2:])),
        (7, 7),
        (1, 1),
        ("0x" + "AB" * 32, bytes.fromhex(HASH[2:])),
    ],
)
async def test_a_block_may_be_asked_for(
    index: Index, prover: SimulatedProver, given: Any, block: Any
) -> None:
    await resolve(index, prover, "note", proof="list", proof_block=given)
    assert prover.asked == [("note", None, block)]


async def test_without_being_asked_nothing_is_proven(index: Index, prover: SimulatedProver) -> None:
    plain, _, text = await resolve(index, prover, "note")
    none, _, _ = await resolve(index, prover, "note", proof="none")
    assert plain == none
    assert text.startswith("note 1.1.0 [verified] Takes notes")
    assert "proof" not in plain
    assert prover.asked == []


@pytest.mark.parametrize(
    "arguments",
    [
        {"proof": "all"},
        {"proof": True},
        {"proof": "list", "proof_block": "latest"},
        {"proof": "list", "proof_block": "0x12"},
        {"proof": "list", "proof_block": 0},  # no contract can be in it
        {"proof": "list", "proof_block": -1},
        {"proof": "list", "proof_block": True},
        {"proof": "list", "proof_block": 2**63},
        {"proof": "list", "proof_block": 1.5},
        {"proof_block": 7},
        {"proofs": "list"},
    ],
)
async def test_a_wrong_question_is_refused(
    index: Index, prover: SimulatedProver, arguments: Any
) -> None:
    error, failed, _ = await resolve(index, prover, "note", **arguments)
    assert (failed, error["code"]) == (True, "INVALID_INPUT")
    assert prover.asked == []


async def test_a_reader_without_an_endpoint_says_so(index: Index) -> None:
    error, failed, _ = await resolve(index, None, "note", proof="list")
    assert (failed, error["code"]) == (True, "INVALID_INPUT")
    assert "cannot prove" in error["message"]
    assert "--rpc-url" in error["details"]["fix"]


@pytest.mark.parametrize(
    ("asked", "kind", "code", "version"),
    [
        ("nobody", "list", "NOT_FOUND", None),
        ("note@9.0.0", "exact", "NOT_FOUND", "9.0.0"),
        ("note@^9", "list", "NOT_FOUND", None),
        ("gone", "list", "YANKED", None),
    ],
)
async def test_that_there_is_nothing_is_proven_too(
    index: Index, prover: SimulatedProver, asked: str, kind: str, code: str, version: Any
) -> None:
    error, failed, text = await resolve(index, prover, asked, proof=kind)
    assert (failed, error["code"]) == (True, code)
    name = asked.partition("@")[0]
    assert error["details"]["proof"]["proves"] == [name, version]
    assert "proves" not in text
    assert prover.asked[0][:2] == (name, version)


@pytest.mark.parametrize(
    ("asked", "kind"), [("forged", "list"), ("soon", "list"), ("nobody", "exact")]
)
async def test_what_the_chain_is_not_the_reason_for_is_not_proven(
    index: Index, prover: SimulatedProver, asked: str, kind: str
) -> None:
    error, failed, _ = await resolve(index, prover, asked, proof=kind)
    assert failed
    assert error["code"] in ("UNVERIFIED", "PENDING", "NOT_FOUND")
    assert prover.asked == []


@pytest.mark.parametrize(
    "error",
    [
        InvalidInput("too many releases", Code.TOO_LARGE),
        Unavailable("the endpoint gave no proof", Code.STALLED),
        Unavailable("too many questions", Code.RATE_LIMITED),
    ],
)
async def test_a_proof_that_cannot_be_made_is_an_error(
    index: Index, prover: SimulatedProver, error: CapdexError
) -> None:
    prover.error = error
    told, failed, _ = await resolve(index, prover, "note", proof="list")
    assert failed
    assert (told["code"], told["message"]) == (str(error.code), error.message)


@pytest.mark.parametrize(
    ("chosen", "code"), [({}, "STALLED"), ({"proof_block": "7"}, "INVALID_INPUT")]
)
async def test_a_block_that_a_reorg_replaced_is_the_askers_fault_only_if_he_chose_it(
    index: Index, prover: SimulatedProver, chosen: dict[str, str], code: str
) -> None:
    prover.error = InvalidInput("the chain does not have that block", fix="without proof_block")
    told, failed, _ = await resolve(index, prover, "note", proof="list", **chosen)
    assert failed
    assert (told["code"], told["retryable"]) == (code, code == "STALLED")


async def test_a_proof_of_megabytes_is_said_once(index: Index, prover: SimulatedProver) -> None:
    prover.size = 3_000_000
    answer, failed, text = await resolve(index, prover, "note", proof="list")
    assert not failed
    assert len(answer["proof"]["weight"]) == prover.size
    assert len(text) < 1000


async def test_a_prover_that_does_not_answer_is_not_waited_for_long(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stuck:
        async def prove(self, *_: Any) -> Any:
            await asyncio.Event().wait()

    monkeypatch.setattr("capdex_indexer.query.index.ANSWER_S", 0.05)
    error, failed, _ = await resolve(index, Stuck(), "note", proof="list")
    assert (failed, error["code"]) == (True, "TIMEOUT")


async def test_the_answer_and_its_block_belong_together_while_the_index_moves(
    making: Any, prover: SimulatedProver, tmp_path: Any
) -> None:
    """A block comes between reading where the index is and reading what it holds."""
    url, chain = f"sqlite:///{tmp_path / 'index.db'}", making.Chain()
    chain.publish("note", "1.0.0")
    store = Store.open(url, making.DEPLOYMENT)
    making.follow(store, chain)
    coming = ["1.1.0"]

    class Moving(Index):
        @contextmanager
        def read(self) -> Iterator[Connection]:
            with super().read() as connection:
                connection.exec_driver_sql("SELECT count(*) FROM block")  # the state is fixed now
                if coming:  # the writer commits just now
                    chain.publish("note", coming.pop(0))
                    making.follow(store, chain)
                yield connection

    index = Moving(url)
    try:
        first = chain.head.hash
        answer, failed, _ = await resolve(index, prover, "note", proof="list")
        assert not failed
        assert answer["semver"] == "1.0.0"
        assert answer["as_of"]["block_hash"] == "0x" + first.hex()
        assert prover.asked == [("note", None, first)]
    finally:
        index.close()
        store.close()


async def test_an_index_without_a_block_proves_nothing_yet(
    making: Any, prover: SimulatedProver, tmp_path: Any
) -> None:
    url = f"sqlite:///{tmp_path / 'index.db'}"
    Store.open(url, making.DEPLOYMENT).close()
    index = Index(url)
    try:
        error, failed, _ = await resolve(index, prover, "note", proof="list")
    finally:
        index.close()
    assert (failed, error["code"], error["retryable"]) == (True, "STALLED", True)
