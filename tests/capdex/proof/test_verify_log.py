"""Proofs of the log slot: what holds is told, and whatever was touched is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given
from hypothesis import strategies as st

from capdex.errors import CapdexError, Code, InvalidInput, Unavailable, VerificationFailure
from capdex.net.rpc import client as rpc
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.proofs import prove_log
from capdex.proof.document import LogProof, Slot
from capdex.proof.verify import Anchor, verify_log
from capdex.registry.logs import LogHead

HEAD = LogHead(b"\xee" * 24, 7)
SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
ANY_JSON = st.recursive(
    SCALARS, lambda x: st.lists(x) | st.dictionaries(st.text(max_size=8), x), max_leaves=20
)


@pytest.fixture(scope="session")
def world(proving: Any) -> Any:
    """A registry with seven events, beside some slots of its names."""
    return proving.World(
        {"weather": [proving.Release("1.0.0")]}, raw={bytes(32): HEAD.word}, number=9
    )


@pytest.fixture(scope="session")
def document(proving: Any, world: Any) -> Any:
    return LogProof(
        world.chain_id,
        proving.CONTRACT,
        world.number,
        world.hash,
        world.header,
        proving.proof_of(world.state, proving.CONTRACT),
        Slot(bytes(32), HEAD.word, proving.proof_of(world.storage, bytes(32))),
    ).to_json()


def test_the_log_slot_is_proven_by_the_hash_of_its_block(world: Any, document: Any) -> None:
    block, head = verify_log(LogProof.parse(json.loads(json.dumps(document))), world.anchor)
    assert (block.number, block.hash, block.parent) == (9, world.hash, b"\x11" * 32)
    assert head == HEAD


def test_a_contract_without_events_has_an_empty_slot(proving: Any) -> None:
    world = proving.World(raw={bytes(32): bytes(32)})
    slot = Slot(bytes(32), bytes(32), proving.proof_of(world.storage, bytes(32)))
    account = proving.proof_of(world.state, proving.CONTRACT)
    proof = LogProof(
        world.chain_id, proving.CONTRACT, world.number, world.hash, world.header, account, slot
    )
    assert verify_log(proof, world.anchor)[1] == LogHead()


def test_a_proof_counts_only_for_the_contract_and_the_block_that_are_meant(
    world: Any, document: Any, proving: Any
) -> None:
    proof = LogProof.parse(document)
    for anchor in (
        Anchor(1, proving.CONTRACT, world.hash),
        Anchor(world.chain_id, proving.OTHER_CONTRACT, world.hash),
        Anchor(world.chain_id, proving.CONTRACT, bytes(32)),
    ):
        with pytest.raises(VerificationFailure) as caught:
            verify_log(proof, anchor)
        assert caught.value.code is Code.BAD_PROOF


def changed(value: Any) -> Iterator[Any]:
    """A JSON value with one thing in it changed, for every thing."""
    if isinstance(value, dict):
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
            for other in changed(value[key]):
                yield value | {key: other}
    elif isinstance(value, list):
        for i in range(len(value)):
            yield value[:i] + value[i + 1 :]
            yield [*value[:i], value[i], *value[i:]]
            for other in changed(value[i]):
                yield [*value[:i], other, *value[i + 1 :]]
    elif isinstance(value, int):
        yield value + 1
    else:
        middle = 2 + (len(value) - 2) // 2
        yield value[:middle] + ("0" if value[middle] != "0" else "1") + value[middle + 1 :]
        yield value[:-1]
        yield f"{value}00"


def test_whatever_is_changed_the_proof_is_refused(world: Any, document: Any) -> None:
    count = 0
    for count, other in enumerate(changed(copy.deepcopy(document)), 1):  # noqa: B007
        with pytest.raises(VerificationFailure) as caught:
            verify_log(LogProof.parse(other), world.anchor)
        assert caught.value.code is Code.BAD_PROOF
    assert count > 40


def test_another_slot_of_the_contract_is_not_the_log(
    world: Any, document: Any, proving: Any
) -> None:
    key = next(key for key in world.slots if any(key))
    slot = Slot(key, world.slots[key], proving.proof_of(world.storage, key))
    other = document | {
        "slot": {
            "key": f"0x{key.hex()}",
            "value": f"0x{slot.value.hex()}",
            "proof": [f"0x{node.hex()}" for node in slot.proof],
        }
    }
    with pytest.raises(VerificationFailure, match="does not lead"):
        verify_log(LogProof.parse(other), world.anchor)


@given(ANY_JSON)
def test_any_json_is_a_proof_or_refused(value: Any) -> None:
    with suppress(VerificationFailure):
        LogProof.parse(value)


# asking an endpoint -------------------------------------------------------------------------


class Endpoint:
    """A simulated chain endpoint over one block; `answers` replace what it would say."""

    def __init__(self, world: Any, document: Any, proving: Any) -> None:
        self.answers: dict[str, Any] = {}
        block = proving.block_json(world.number, world.state.root_hash)
        self.honest = {
            "eth_getBlockByNumber": block | {"hash": f"0x{world.hash.hex()}"},
            "eth_getProof": {
                "accountProof": document["account_proof"],
                "storageProof": [document["slot"] | {"key": "0x0"}],
            },
        }

    async def answer(self, request: web.Request) -> web.Response:
        call = await request.json()
        reply = {"jsonrpc": "2.0", "id": call["id"]}
        said = (self.honest | self.answers)[call["method"]]
        return web.json_response(reply | (said if "error" in (said or {}) else {"result": said}))


@pytest.fixture
async def asked(
    world: Any, document: Any, proving: Any, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Endpoint, Rpc]]:
    monkeypatch.setattr(rpc, "BACKOFF_BASE_S", 0.001)
    monkeypatch.setattr(rpc, "BACKOFF_CAP_S", 0.001)
    endpoint, app = Endpoint(world, document, proving), web.Application()
    app.router.add_post("/", endpoint.answer)
    async with TestServer(app) as server, Rpc([str(server.make_url("/"))]) as open_rpc:
        yield endpoint, open_rpc


async def test_an_endpoint_is_asked_for_the_proof(
    asked: tuple[Endpoint, Rpc], world: Any, document: Any, proving: Any
) -> None:
    found = await prove_log(
        asked[1], chain_id=world.chain_id, contract=proving.CONTRACT, block=world.number
    )
    assert found.to_json() == document


@pytest.mark.parametrize(
    ("method", "answer", "error"),
    [
        ("eth_getBlockByNumber", None, InvalidInput),
        ("eth_getProof", {"error": {"code": -32000, "message": "missing trie node"}}, InvalidInput),
        ("eth_getProof", {"error": {"code": -32601, "message": "no such method"}}, Unavailable),
        ("eth_getProof", {"accountProof": [], "storageProof": []}, Unavailable),
    ],
)
async def test_what_proves_nothing_is_not_given_out(
    asked: tuple[Endpoint, Rpc],
    world: Any,
    proving: Any,
    method: str,
    answer: Any,
    error: type[CapdexError],
) -> None:
    endpoint, open_rpc = asked
    endpoint.answers[method] = answer
    with pytest.raises(error):
        await prove_log(
            open_rpc, chain_id=world.chain_id, contract=proving.CONTRACT, block=world.number
        )


async def test_a_proof_that_does_not_hold_is_the_endpoints_fault(
    asked: tuple[Endpoint, Rpc], world: Any, document: Any, proving: Any
) -> None:
    endpoint, open_rpc = asked
    lie = copy.deepcopy(endpoint.honest["eth_getProof"])
    lie["storageProof"][0]["value"] = "0x1"
    endpoint.answers["eth_getProof"] = lie
    with pytest.raises(Unavailable, match="no valid proof"):
        await prove_log(
            open_rpc, chain_id=world.chain_id, contract=proving.CONTRACT, block=world.number
        )
