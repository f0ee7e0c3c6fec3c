"""Making proofs out of what endpoints say, each in its own way, and some falsely."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.net import verified_resolve as trusted
from capdex.net.rpc import client as rpc
from capdex.net.rpc import proofs
from capdex.net.rpc.client import Rpc
from capdex.net.rpc.proofs import Prover
from capdex.net.verified_resolve import trusted_block
from capdex.proof.document import MAX_RELEASES
from capdex.version import Version

LONG = "2.0.0-" + "x" * 27
Answer = Callable[[Any], Any]


class Endpoint:
    """A simulated chain endpoint over one block; `changes` replace what it would say."""

    def __init__(self, world: Any, proving: Any) -> None:
        self.world, self.proving = world, proving
        self.calls: list[tuple[str, Any]] = []
        self.changes: dict[str, Answer] = {}
        self.block = proving.block_json(world.number, world.state.root_hash)
        self.block |= {"hash": "0x" + world.hash.hex()}

    def reply(self, method: str, params: Any) -> Any:
        answer = getattr(self, method)(*params)
        return self.changes.get(method, lambda x: x)(answer)

    def eth_chainId(self) -> str:  # noqa: N802
        return hex(self.world.chain_id)

    def eth_getBlockByNumber(self, tag: str, _: bool) -> Any:  # noqa: N802
        return self.block if tag in ("latest", hex(self.world.number)) else None

    def eth_getBlockByHash(self, hash_: str, _: bool) -> Any:  # noqa: N802
        return self.block if hash_ == self.block["hash"] else None

    def eth_getProof(self, address: str, keys: list[str], at: Any) -> Any:  # noqa: N802
        assert address == "0x" + self.proving.CONTRACT.hex()
        assert at == {"blockHash": self.block["hash"]}
        return {
            "accountProof": self._nodes(self.world.state, self.proving.CONTRACT),
            "storageProof": [
                {
                    "key": key,
                    "value": hex(int(self.world.slots.get(raw, b"\0").hex(), 16)),
                    "proof": self._nodes(self.world.storage, raw),
                }
                for key in keys
                for raw in [bytes.fromhex(key[2:])]
            ],
        }

    def eth_call(self, call: Any, at: Any) -> str:
        length = int(call["data"][10 + 128 :][:64], 16)  # of the name; the version is after it
        tail = bytes.fromhex(call["data"][10 + 192 :])
        padded = -(-length // 32) * 32
        name, rest = tail[:length].decode(), tail[padded:]
        semver = rest[32 : 32 + int.from_bytes(rest[:32], "big")].decode()
        versions = [x.semver for x in self.world.names[name]]
        return f"0x{versions.index(semver):064x}"

    def _nodes(self, trie: Any, key: bytes) -> list[str]:
        return ["0x" + node.hex() for node in self.proving.proof_of(trie, key)]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc, "BACKOFF_BASE_S", 0.001)
    monkeypatch.setattr(rpc, "BACKOFF_CAP_S", 0.001)
    monkeypatch.setattr(trusted, "POLL_S", 0.001)


@pytest.fixture(scope="module")
def world(proving: Any) -> Any:
    release = proving.Release
    weather = [release("1.0.0"), release(LONG), release("1.1.0", yanked=True)]
    return proving.World({"weather": weather})


@pytest.fixture
async def serve(proving: Any) -> AsyncIterator[Any]:
    """Serve a world; gives the endpoint, an `Rpc` to it and a prover by it."""
    closing: list[Any] = []

    async def start(world: Any) -> tuple[Endpoint, Rpc, Prover]:
        endpoint = Endpoint(world, proving)

        async def answer(request: web.Request) -> web.Response:
            call = orjson.loads(await request.read())
            endpoint.calls.append((call["method"], call["params"]))
            result = endpoint.reply(call["method"], call["params"])
            reply = {"jsonrpc": "2.0", "id": call["id"]}
            reply |= (
                result if isinstance(result, dict) and "error" in result else {"result": result}
            )
            return web.Response(body=orjson.dumps(reply))

        app = web.Application()
        app.router.add_post("/{tail:.*}", answer)
        server = TestServer(app)
        await server.start_server()
        opened = Rpc([str(server.make_url("/secret-key"))])
        closing.extend([opened, server])
        contract = proving.CONTRACT
        return endpoint, opened, Prover(opened, chain_id=world.chain_id, contract=contract)

    yield start
    for part in closing:
        await part.close()


async def refused(prover: Prover, version: str | None = None, block: Any = 7) -> CapdexError:
    """The error of a proof that cannot be had; it names no endpoint."""
    with pytest.raises((InvalidInput, Unavailable)) as caught:
        await prover.prove("weather", Version.parse(version) if version else None, block)
    error: CapdexError = caught.value
    assert "127.0.0.1" not in str(error.to_json())
    assert "secret" not in str(error.to_json())
    return error


def failing(message: str, code: int = -32000) -> Answer:
    return lambda _: {"error": {"code": code, "message": message}}


@pytest.mark.parametrize("version", [None, "1.0.0", "1.1.0", LONG, "7.0.0"])
async def test_a_document_is_made_of_what_the_endpoint_says(
    serve: Any, world: Any, version: str | None
) -> None:
    _, _, prover = await serve(world)
    for block in (world.number, world.hash):
        made = await prover.prove("weather", Version.parse(version) if version else None, block)
        assert made == world.document("weather", version)


async def test_a_name_that_nobody_claimed_is_proven_free(serve: Any, world: Any) -> None:
    _, _, prover = await serve(world)
    assert await prover.prove("nobody", None, 7) == world.document("nobody")


async def test_clients_differ_in_what_they_list(serve: Any, world: Any, proving: Any) -> None:
    """Anvil gives one node of an empty trie, others list nodes that stand inside their parent."""
    empty = proving.World({}, {bytes(32): bytes(32)})
    endpoint, _, prover = await serve(empty)

    def anvil(answer: Any) -> Any:
        for slot in answer["storageProof"]:
            slot["proof"] = ["0x80"]
        return answer

    endpoint.changes["eth_getProof"] = anvil
    assert await prover.prove("weather", None, 7) == empty.document("weather")

    def inlined(answer: Any) -> Any:
        for slot in answer["storageProof"]:
            slot["key"] = hex(int(slot["key"], 16))
            slot["proof"] = [*slot["proof"], "0xc3208101"]
        return answer

    endpoint, _, prover = await serve(world)
    endpoint.changes["eth_getProof"] = inlined
    assert await prover.prove("weather", None, 7) == world.document("weather")


async def test_many_slots_are_asked_for_in_portions(
    serve: Any, proving: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proofs, "MAX_KEYS", 10)
    many = proving.World({"weather": [proving.Release(f"1.{i}.0") for i in range(25)]})
    endpoint, _, prover = await serve(many)
    assert await prover.prove("weather", None, 7) == many.document("weather")
    asked = [len(params[1]) for method, params in endpoint.calls if method == "eth_getProof"]
    assert asked == [1, 10, 10, 5, 10, 10, 5]


async def test_a_list_over_the_limit_is_refused_before_it_is_fetched(
    serve: Any, proving: Any
) -> None:
    record = bytes(8) + (MAX_RELEASES + 1).to_bytes(4, "big") + proving.OWNER
    huge = proving.World({}, {proving.slots.record_slot("weather"): record})
    endpoint, _, prover = await serve(huge)
    assert (await refused(prover)).code is Code.TOO_LARGE
    assert len([x for x, _ in endpoint.calls if x == "eth_getProof"]) == 1


@pytest.mark.parametrize("block", [8, b"\x11" * 32])
async def test_a_block_that_is_not_there_is_the_callers_mistake(
    serve: Any, world: Any, block: Any
) -> None:
    _, _, prover = await serve(world)
    error = await refused(prover, block=block)
    assert (error.code, error.kind.retryable) == (Code.INVALID_INPUT, False)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (failing("missing trie node abc (path )"), Code.INVALID_INPUT),
        (failing("header not found"), Code.INVALID_INPUT),
        (failing("rate limit exceeded", 429), Code.RATE_LIMITED),
        (failing("the method eth_getProof does not exist", -32601), Code.STALLED),
        (failing("something broke"), Code.STALLED),
        (lambda _: None, Code.STALLED),
        (lambda x: x | {"storageProof": x["storageProof"][1:]}, Code.STALLED),
        (lambda x: x | {"storageProof": [7]}, Code.STALLED),
        (lambda x: x | {"accountProof": "0x"}, Code.STALLED),
        (lambda x: x | {"accountProof": []}, Code.STALLED),
        (lambda x: x | {"accountProof": x["accountProof"][1:]}, Code.STALLED),
    ],
)
async def test_an_endpoint_that_gives_no_proof_is_told_so(
    serve: Any, world: Any, answer: Answer, code: Code
) -> None:
    endpoint, _, prover = await serve(world)
    endpoint.changes["eth_getProof"] = answer
    assert (await refused(prover)).code is code


async def test_what_an_endpoint_says_falsely_is_not_passed_on(serve: Any, world: Any) -> None:
    endpoint, _, prover = await serve(world)

    def zero(answer: Any) -> Any:
        for slot in answer["storageProof"]:
            slot["value"] = "0x0"
        return answer

    endpoint.changes["eth_getProof"] = zero
    assert (await refused(prover)).code is Code.STALLED
    assert (await refused(prover, "1.0.0")).code is Code.STALLED
    endpoint.changes = {"eth_call": lambda _: "0x" + "00" * 31 + "02"}  # another release's index
    assert (await refused(prover, "1.0.0")).code is Code.STALLED
    endpoint.changes = {"eth_call": lambda _: "0x"}
    assert (await refused(prover, "1.0.0")).code is Code.STALLED


@pytest.mark.parametrize(
    "change", [{"gasUsed": "0x1"}, {"newForkField": None, "baseFeePerGas": None}, {"hash": "0x11"}]
)
async def test_a_header_that_does_not_make_its_hash_is_no_header(
    serve: Any, world: Any, change: Any
) -> None:
    endpoint, _, prover = await serve(world)
    endpoint.changes["eth_getBlockByNumber"] = lambda block: block | change
    assert (await refused(prover)).code is Code.STALLED


# the second endpoint ------------------------------------------------------------------------


async def test_a_block_of_the_trusted_endpoint_has_a_hash_and_an_age(
    serve: Any, world: Any, proving: Any
) -> None:
    endpoint, opened, _ = await serve(world)
    block, head = await trusted_block(opened, chain_id=31337, number=7)
    assert (block.hash, head.hash) == (world.hash, world.hash)
    newer = proving.block_json(1007, bytes(32)) | {"hash": "0x" + "22" * 32}
    endpoint.changes["eth_getBlockByNumber"] = lambda x: (
        newer if endpoint.calls[-1][1][0] == "latest" else x
    )
    block, head = await trusted_block(opened, chain_id=31337, number=7)
    assert (head.number - block.number, head.timestamp - block.timestamp) == (1000, 12_000)


async def test_the_trusted_endpoint_may_be_a_little_behind(serve: Any, world: Any) -> None:
    endpoint, opened, _ = await serve(world)
    head = endpoint.block | {"number": "0x6"}  # some give their newest block instead
    late = iter([None, head, {"error": {"code": -32602, "message": "BlockOutOfRange"}}])
    endpoint.changes["eth_getBlockByNumber"] = lambda x: next(late, x)
    block, _ = await trusted_block(opened, chain_id=31337, number=7)
    assert (block.number, block.hash) == (7, world.hash)


async def test_a_block_that_never_comes_is_waited_for_in_vain(
    serve: Any, world: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trusted, "WAIT_S", 0.01)
    _, opened, _ = await serve(world)
    with pytest.raises(Unavailable) as caught:
        await trusted_block(opened, chain_id=31337, number=99)
    assert (caught.value.code, caught.value.kind.retryable) == (Code.RPC_UNAVAILABLE, True)


async def test_an_endpoint_of_another_chain_is_not_trusted(serve: Any, world: Any) -> None:
    _, opened, _ = await serve(world)
    with pytest.raises(Refused) as caught:
        await trusted_block(opened, chain_id=1, number=7)
    assert caught.value.code is Code.WRONG_CHAIN
    assert "secret-key" not in str(caught.value.to_json())
