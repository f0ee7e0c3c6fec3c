"""Endpoints that answer nonsense: always an error of ours, never a stray exception."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from eth_account import Account
from eth_hash.auto import keccak
from hypothesis import given
from hypothesis import strategies as st

from capdex.encoding.abi import parse_address
from capdex.encoding.contract_abi import artifact
from capdex.errors import CapdexError, Code, InvalidInput, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.net.rpc.client import Rpc
from capdex_publisher.ethereum.anvil import fund
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.ethereum.revert_reasons import UNKNOWN, decode, explain
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.submit import submit

ADDRESS = Account.from_key(b"\x07" * 32).address
SELECTORS = [
    keccak(f"{entry['name']}({','.join(i['type'] for i in entry['inputs'])})".encode())[:4]
    for entry in artifact()["abi"]
    if entry["type"] == "error"
]
TX = "0x" + "11" * 32


@asynccontextmanager
async def endpoint(answer):
    """A loopback server; `answer(method, params)` gives the whole HTTP response."""

    async def reply(request):
        call = await request.json()
        response = await asyncio.to_thread(answer, call["method"], call["params"])
        if response.text and response.text.startswith("{"):  # every reply carries its call's id
            response.text = response.text.replace("{", f'{{"id": {call["id"]}, ', 1)
        return response

    app = web.Application()
    app.router.add_post("/", reply)
    async with TestServer(app) as server:
        yield str(server.make_url("/"))


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ({"text": "<html>"}, Code.RPC_UNAVAILABLE),
        ({"text": "[]"}, Code.RPC_UNAVAILABLE),
        ({"text": "{}"}, Code.RPC_UNAVAILABLE),
        ({"text": "", "status": 503}, Code.RPC_UNAVAILABLE),
        ({"text": "", "status": 429}, Code.RATE_LIMITED),
        ({"text": '{"error": 1}'}, Code.RPC_UNAVAILABLE),
        ({"text": '{"error": {"code": 1}}'}, Code.RPC_UNAVAILABLE),
        (
            {"text": '{"error": {"code": -32601, "message": "no \\u001b[31m"}}'},
            Code.RPC_UNAVAILABLE,
        ),
        ({"text": '{"result": "zz"}'}, Code.RPC_UNAVAILABLE),
        ({"text": '{"result": null}'}, Code.RPC_UNAVAILABLE),
        ({"text": '{"result": {}}'}, Code.RPC_UNAVAILABLE),
        ({"status": 302, "headers": {"Location": "http://127.0.0.1:1/"}}, Code.RPC_UNAVAILABLE),
    ],
)
async def test_an_endpoint_that_makes_no_sense_is_unavailable(response, code, tmp_path):
    async with endpoint(lambda *_: web.Response(**response)) as url:
        with pytest.raises(Unavailable) as refusal:
            async with Chain.connect(url, 1, state_dir=tmp_path):
                pass
    assert refusal.value.code is code
    assert refusal.value.why.isprintable()


@pytest.mark.parametrize(
    "result",
    ["null", "1", '"0x"', '"0xzz"', "[]", "{}", '[{"topics": 1}]', '"0x' + "ff" * 32 + '"'],
)
async def test_later_nonsense_is_an_error_of_ours_too(result, tmp_path):
    def answer(method, params):
        good = {"eth_chainId": '"0x1"', "eth_getCode": '"0x60"'}
        return web.Response(text=f'{{"result": {good.get(method, result)}}}')

    async with (
        endpoint(answer) as url,
        Registry.connect(url, ADDRESS, 1, state_dir=tmp_path) as registry,
    ):
        for call in (
            lambda: registry.release("note", "1.0.0"),
            lambda: registry.releases("note"),
            lambda: registry.find_publication("note", "1.0.0"),
            lambda: registry.price(ADDRESS, "publish", "note", "1.0.0", "b", b"\1" * 32),
            lambda: registry.chain.knows(TX),
            lambda: confirm(registry.chain, TX, timeout_s=0.01),
        ):
            try:
                await call()
            except CapdexError as error:
                assert isinstance(error, Unavailable) or error.code is Code.EMPTY_ACCOUNT  # noqa: PT017


async def test_what_another_contract_answers_leads_to_the_address(registry, local_chain):
    local_chain.call("anvil_setCode", registry.address, "0x00")
    with pytest.raises(Unavailable) as refusal:
        await registry.name_state("note")
    assert f"is {registry.address} the contract of this network?" in refusal.value.why


async def test_an_endpoint_that_fails_while_a_block_is_awaited_is_asked_again(tmp_path):
    asked = []

    def answer(method, params):
        if method == "eth_chainId":
            return web.Response(text='{"result": "0x1"}')
        asked.append(method)
        return web.Response(status=502)

    async with endpoint(answer) as url, Chain.connect(url, 1, state_dir=tmp_path) as chain:
        with pytest.raises(Unavailable) as late:
            await confirm(chain, TX, timeout_s=2.0)
    assert late.value.code is Code.TIMEOUT
    assert TX in late.value.message
    assert "502" in late.value.why
    assert len(asked) > 1


async def test_an_endpoint_with_a_small_log_range_is_asked_in_pieces(
    registry, signer, local_chain, tmp_path
):
    cid = Cid.of(b"bytes")
    priced = await registry.price(signer.address, "publish", "note", "1.0.0", str(cid), cid.digest)
    await confirm(registry.chain, await submit(registry.chain, signer, priced))
    local_chain.call("anvil_mine", hex(40))

    def answer(method, params):
        if method == "eth_getLogs":
            first, last = (int(params[0][key], 16) for key in ("fromBlock", "toBlock"))
            if last - first > 5:
                error = {"code": -32005, "message": "block range is too wide"}
                return web.json_response({"error": error})
        return web.json_response({"result": local_chain.call(method, *params)})

    async with (
        endpoint(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path) as limited,
    ):
        found = await limited.find_publication("note", "1.0.0")
    assert found is not None
    assert found.announcement.cid == str(cid)


async def test_only_http_and_websocket_endpoints_are_published_through(tmp_path):
    for url in ("ftp://127.0.0.1:1", "file:///etc/passwd", ""):
        with pytest.raises(UsageError):
            async with Chain.connect(url, 1, state_dir=tmp_path):
                pass


@given(st.one_of(st.text(), st.binary().map(lambda raw: "0x" + raw.hex()), st.none()))
def test_any_revert_data_is_explained(data):
    assert isinstance(explain(data), CapdexError)


@given(st.binary(max_size=200))
def test_arguments_of_a_known_error_may_be_garbage(tail):
    name, _ = decode("0x00000000" + tail.hex())
    assert name == UNKNOWN
    for selector in SELECTORS:
        assert isinstance(explain("0x" + selector.hex() + tail.hex()), CapdexError)


@given(st.text())
def test_any_text_is_an_address_or_a_usage_error(text):
    try:
        assert len(parse_address(text)) == 42
    except InvalidInput as error:
        assert isinstance(error, UsageError)  # noqa: PT017


async def test_an_account_gets_play_money_on_hardhats_node_which_knows_no_method_of_anvil():
    def answer(method, _):
        if method in ("hardhat_setBalance", "evm_mine"):
            return web.Response(text='{"result": true}')
        refusal = f"Method {method} is not supported"
        return web.Response(text=f'{{"error": {{"code": -32004, "message": "{refusal}"}}}}')

    async with endpoint(answer) as url, Rpc([url], max_attempts=1) as rpc:
        await fund(rpc, ADDRESS)
