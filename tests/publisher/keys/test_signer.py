"""Signers elsewhere: what they answer is exactly what was asked for, or nothing is sent."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from eth_account import Account
from eth_account.messages import encode_defunct
from hypothesis import given
from hypothesis import strategies as st

from capdex import signing
from capdex.encoding.contract_abi import functions
from capdex.encoding.keccak import keccak
from capdex.errors import CapdexError, Code, Refused, Unavailable, UsageError
from capdex_publisher.ethereum.transaction import Sent
from capdex_publisher.keys.external_signer import MAX_ANSWER_BYTES, ExternalSigner, open_external
from capdex_publisher.keys.signer import LocalSigner
from capdex_publisher.keys.signer_replies import check_message, check_transaction
from capdex_publisher.tx.submit import submit

ACCOUNT = Account.from_key(b"\x07" * 32)
OTHER = Account.from_key(b"\x08" * 32)
ORDER = signing.ORDERS[signing.Algorithm.SECP256K1]
FIELDS = {
    "type": 2,
    "chainId": 31337,
    "nonce": 5,
    "gas": 90_000,
    "maxFeePerGas": 3 * 10**9,
    "maxPriorityFeePerGas": 10**9,
    "value": 0,
    "data": "0x1234",
    "to": OTHER.address,
}
MESSAGE = b"ACP-SIG-V1\nsomething"


def signed(account=ACCOUNT, **changes):
    """The raw transaction (0x hex) of `FIELDS` with some of them changed."""
    return "0x" + bytes(account.sign_transaction(FIELDS | changes).raw_transaction).hex()


def signature(account=ACCOUNT, message=MESSAGE):
    return "0x" + bytes(account.sign_message(encode_defunct(primitive=message)).signature).hex()


def read(wire):
    """What `eth_signTransaction` was asked for, as eth_account takes it."""
    numbers = {"type", "chainId", "nonce", "gas", "maxFeePerGas", "maxPriorityFeePerGas", "value"}
    fields = {key: int(x, 16) if key in numbers else x for key, x in wire.items()}
    assert fields.pop("from") == ACCOUNT.address
    return fields


@asynccontextmanager
async def signer_at(answer):
    """A signer over HTTP: `answer(method, params)` gives a result, or a whole response."""

    async def reply(request):
        call = await request.json()
        result = answer(call["method"], call["params"])
        if hasattr(result, "__await__"):
            result = await result
        if isinstance(result, web.StreamResponse):
            return result
        return web.json_response({"jsonrpc": "2.0", "id": call["id"], "result": result})

    app = web.Application()
    app.router.add_post("/", reply)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/"
    finally:
        await runner.cleanup()


def error(code, message="no"):
    return web.json_response({"error": {"code": code, "message": message}})


def script(tmp_path, body):
    """The command line of a signer in Python; `call` is the request, `say` answers."""
    path = tmp_path / "signer.py"
    path.write_text(
        "import json, sys\n"
        "call = json.loads(sys.stdin.readline())\n"
        "say = lambda **x: print(json.dumps(x))\n" + body,
        "utf-8",
    )
    return shlex.join([sys.executable, str(path)])


# what an honest signer does ---------------------------------------------------------------------


async def test_an_http_signer_signs_what_it_is_asked_to():
    def answer(method, params):
        if method == "eth_signTransaction":
            return {"raw": "0x" + bytes(ACCOUNT.sign_transaction(read(params[0]))[0]).hex()}
        assert (method, params[1]) == ("personal_sign", ACCOUNT.address)
        return signature(message=bytes.fromhex(params[0][2:]))

    async with signer_at(answer) as url:
        signer = ExternalSigner(url, ACCOUNT.address)
        here = LocalSigner(ACCOUNT.key)
        assert await signer.sign_transaction(FIELDS) == await here.sign_transaction(FIELDS)
        assert await signer.sign_message(MESSAGE) == await here.sign_message(MESSAGE)


@given(
    st.binary(min_size=32, max_size=32).filter(lambda key: 0 < int.from_bytes(key) < ORDER),
    st.binary(max_size=300),
    st.integers(0, 2**64 - 2),
)
async def test_a_local_key_signs_byte_for_byte_as_eth_account_does(key, data, nonce):
    theirs, ours = Account.from_key(key), LocalSigner(key)
    assert ours.address == theirs.address
    assert (await ours.sign_message(data)) == bytes.fromhex(signature(theirs, data)[2:])
    call = FIELDS | {"data": "0x" + data.hex(), "nonce": nonce}
    creation = {name: value for name, value in call.items() if name != "to"}
    for fields in (call, creation):
        expected = theirs.sign_transaction(fields)
        made = await ours.sign_transaction(fields)
        assert made.raw == bytes(expected.raw_transaction)
        assert made.tx_hash == "0x" + bytes(expected.hash).hex()


async def test_clefs_own_method_names_are_tried_too():
    asked = []

    def answer(method, params):
        asked.append(method)
        match method:
            case "account_signTransaction":
                return {"raw": signed(), "tx": {}}
            case "account_signData":
                assert params == ["text/plain", ACCOUNT.address, "0x" + MESSAGE.hex()]
                return signature()
            case "account_list":
                return [ACCOUNT.address.lower()]
        return error(-32601, "the method does not exist")

    async with signer_at(answer) as url:
        signer = await open_external(url)
        assert signer.address == ACCOUNT.address
        assert (await signer.sign_transaction(FIELDS)).raw == bytes.fromhex(signed()[2:])
        assert await signer.sign_message(MESSAGE) == bytes.fromhex(signature()[2:])
    assert asked[:2] == ["eth_accounts", "account_list"]


async def test_clef_is_told_which_function_a_transaction_calls():
    call_data = functions("CapabilityRegistry")["unyank"].encode(["tea", "1.0.0", 0])

    def answer(method, params):
        if method == "eth_signTransaction":
            return error(-32601)
        call, *signature = params
        if not signature or keccak(signature[0].encode())[:4].hex() != call["data"][2:10]:
            return error(-32000, "validation failed: the ABI signature could not be found")
        return {"raw": signed(data=call["data"])}

    async with signer_at(answer) as url:
        await ExternalSigner(url, ACCOUNT.address).sign_transaction(FIELDS | {"data": call_data})


async def test_a_signer_that_cannot_sign_messages_says_so():
    async with signer_at(lambda *_: error(-32601)) as url:
        with pytest.raises(Refused, match="external signer") as refusal:
            await ExternalSigner(url, ACCOUNT.address).sign_message(MESSAGE)
    assert refusal.value.code is Code.SIGNER_REFUSED
    assert "personal_sign" in refusal.value.why


async def test_a_person_who_says_no_is_heard():
    async with signer_at(lambda *_: error(-32000, "request denied \x1b[31m")) as url:
        with pytest.raises(Refused) as refusal:
            await ExternalSigner(url, ACCOUNT.address).sign_transaction(FIELDS)
    assert refusal.value.code is Code.SIGNER_REFUSED
    assert refusal.value.why == rf'{url[:-1]} says "request denied \u001b[31m"'


async def test_of_several_accounts_one_has_to_be_named():
    both = [ACCOUNT.address, OTHER.address]
    async with signer_at(lambda *_: both) as url:
        with pytest.raises(UsageError, match="2 accounts") as refusal:
            await open_external(url)
        assert ACCOUNT.address in refusal.value.why
        assert (await open_external(url, OTHER.address.lower())).address == OTHER.address
    wrong: list[Any] = [[], None, ["x"], {}]
    for accounts in wrong:
        async with signer_at(lambda *_, found=accounts: found) as url:
            with pytest.raises(CapdexError):
                await open_external(url)


async def test_a_command_is_asked_by_one_line_and_its_words_are_shown(tmp_path):
    command = script(
        tmp_path,
        "assert call['method'] == 'eth_signTransaction'\n"
        "print('press the button', file=sys.stderr)\n"
        f"say(result={signed()!r})\n",
    )
    shown: list[str] = []
    signer = ExternalSigner(command, ACCOUNT.address, show=shown.append)
    assert (await signer.sign_transaction(FIELDS)).raw == bytes.fromhex(signed()[2:])
    assert shown[1:] == ["press the button"]
    assert "asked to sign" in shown[0]


async def test_no_shell_reads_a_command_line(tmp_path):
    command = script(tmp_path, "say(result=[sys.argv[1]])")
    spec = f"{command} '{ACCOUNT.address}'"
    assert (await open_external(spec)).address == ACCOUNT.address
    with pytest.raises(CapdexError):
        await open_external(f"{spec}; touch {tmp_path / 'made'}", "")
    with pytest.raises(CapdexError):
        await open_external(f"$(touch {tmp_path / 'made'})", "")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("spec", ["", "  ", "'open", "/nowhere/signer --x"])
async def test_what_is_no_signer_is_a_usage_error(spec):
    with pytest.raises(UsageError) as refusal:
        await open_external(spec)
    assert refusal.value.code is Code.CONFIG


# what a hostile one does ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"nonce": 6}, "nonce"),
        ({"to": ACCOUNT.address}, "to"),
        ({"chainId": 1}, "chainId"),
        ({"value": 1}, "value"),
        ({"data": "0x1235"}, "data"),
        ({"gas": 90_001}, "gas"),
        ({"maxFeePerGas": 4 * 10**9}, "maxFeePerGas"),
        ({"maxPriorityFeePerGas": 2 * 10**9}, "maxPriorityFeePerGas"),
        (
            {"accessList": [{"address": OTHER.address, "storageKeys": ["0x" + "00" * 32]}]},
            "accessList",
        ),
    ],
)
async def test_a_changed_field_is_refused_by_its_name(changes, named):
    async with signer_at(lambda *_: signed(**changes)) as url:
        with pytest.raises(Refused) as refusal:
            await ExternalSigner(url, ACCOUNT.address).sign_transaction(FIELDS)
    assert refusal.value.code is Code.SIGNER_REFUSED
    assert f"its {named} is" in refusal.value.why


def test_another_key_and_another_type_are_refused():
    legacy = {key: FIELDS[key] for key in ("chainId", "nonce", "gas", "value", "data", "to")}
    raw = "0x" + bytes(ACCOUNT.sign_transaction(legacy | {"gasPrice": 10**9})[0]).hex()
    for answer, word in ((signed(OTHER), OTHER.address), (raw, "type 2")):
        with pytest.raises(Refused) as refusal:
            check_transaction(answer, FIELDS, ACCOUNT.address)
        assert word in refusal.value.why


def test_the_high_twin_of_a_signature_is_refused():
    import rlp

    items = rlp.decode(bytes.fromhex(signed()[4:]))
    s = ORDER - int.from_bytes(items[-1], "big")
    items[-1], items[-3] = s.to_bytes(32, "big"), b"" if items[-3] else b"\1"
    with pytest.raises(Refused, match="external signer") as refusal:
        check_transaction("0x02" + rlp.encode(items).hex(), FIELDS, ACCOUNT.address)
    assert "canonical" in refusal.value.why


def test_a_parity_in_the_old_form_of_27_or_28_is_refused():
    import rlp

    items = rlp.decode(bytes.fromhex(signed()[4:]))
    items[-3] = bytes([27 + int.from_bytes(items[-3])])
    with pytest.raises(Refused) as refusal:
        check_transaction("0x02" + rlp.encode(items).hex(), FIELDS, ACCOUNT.address)
    assert "canonical" in refusal.value.why


def test_a_message_signed_by_another_or_over_another_is_refused():
    for answer in (
        *(signature(OTHER), signature(message=b"other"), "0x", None, signature() + "00"),
        *({"raw": signature()}, signature()[:-2] + "1d", "0x" + "ff" * 65),
    ):
        with pytest.raises(Refused) as refusal:
            check_message(answer, MESSAGE, ACCOUNT.address)
        assert refusal.value.code is Code.SIGNER_REFUSED
    zero_based = signature()[:-2] + f"{int(signature()[-2:], 16) - 27:02x}"
    assert check_message(zero_based, MESSAGE, ACCOUNT.address) == bytes.fromhex(signature()[2:])


@given(
    st.one_of(
        st.none(),
        st.text(),
        st.binary().map(lambda raw: "0x02" + raw.hex()),
        st.dictionaries(st.just("raw"), st.text()),
        st.lists(st.integers()),
    )
)
def test_garbage_is_never_a_transaction(answer):
    with pytest.raises(Refused):
        check_transaction(answer, FIELDS, ACCOUNT.address)


@given(st.integers(0, len(signed()) // 2 - 2), st.integers(1, 255))
def test_no_byte_of_a_transaction_may_differ(place, bits):
    raw = bytearray.fromhex(signed()[2:])
    raw[place] ^= bits
    with pytest.raises(Refused):
        check_transaction("0x" + raw.hex(), FIELDS, ACCOUNT.address)


@pytest.mark.parametrize(
    "response",
    [
        {"text": "<html>"},
        {"text": "[]"},
        {"text": "{}"},
        {"text": '{"result": null}'},
        {"text": '{"result": 1e999}'},
        {"text": "[" * 100_000},
        {"body": b"{" + b" " * MAX_ANSWER_BYTES},
    ],
)
async def test_an_http_signer_that_talks_nonsense_is_refused(response):
    async with signer_at(lambda *_: web.Response(**response)) as url:
        with pytest.raises(Refused) as refusal:
            await ExternalSigner(url, ACCOUNT.address).sign_transaction(FIELDS)
    assert refusal.value.code is Code.SIGNER_REFUSED


@pytest.fixture
def usual_recursion_limit():
    """Python's own limit, which an import of eth_account raises and a command does not."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.parametrize("reply", ['{"error": {"message": DEEP}}', '{"result": [DEEP]}'])
async def test_a_reply_nested_deeper_than_python_formats_is_refused(reply, usual_recursion_limit):
    deep = reply.replace("DEEP", "[" * 1015 + "]" * 1015)
    async with signer_at(lambda *_: web.Response(text=deep)) as url:
        with pytest.raises(Refused) as refusal:
            await ExternalSigner(url).accounts()
    assert refusal.value.code is Code.SIGNER_REFUSED


@pytest.mark.parametrize("status", [302, 401, 503])
async def test_an_http_signer_that_is_down_can_be_tried_again(status):
    headers = {"Location": "http://127.0.0.1:1/"}
    async with signer_at(lambda *_: web.Response(status=status, headers=headers)) as url:
        with pytest.raises(Unavailable) as late:
            await ExternalSigner(url, ACCOUNT.address).sign_transaction(FIELDS)
    assert late.value.code is Code.SIGNER_UNAVAILABLE
    with pytest.raises(Unavailable) as gone:
        await ExternalSigner(url, ACCOUNT.address).sign_transaction(FIELDS)
    assert gone.value.code is Code.SIGNER_UNAVAILABLE
    assert gone.value.why == "connection refused"


async def test_a_signer_that_hangs_is_left(tmp_path):
    import asyncio

    async def never():
        await asyncio.Event().wait()

    async with signer_at(lambda *_: never()) as url:
        with pytest.raises(Unavailable) as late:
            await ExternalSigner(url, ACCOUNT.address, wait_s=0.1).sign_transaction(FIELDS)
    assert late.value.code is Code.SIGNER_UNAVAILABLE
    # It starts a child that holds its pipes: both are gone when the answer is.
    body = "import subprocess, time\nsubprocess.Popen(['sleep', '1000'])\ntime.sleep(1000)"
    command = script(tmp_path, body)
    with pytest.raises(Unavailable) as hung:
        await ExternalSigner(command, ACCOUNT.address, wait_s=1.0).sign_transaction(FIELDS)
    assert hung.value.code is Code.SIGNER_UNAVAILABLE


@pytest.mark.parametrize(
    "body",
    [
        "",
        "sys.exit(3)",
        "print('nonsense')",
        "say(error={'code': 1, 'message': 'no'})",
        "say(error='no')",
        f"sys.stdout.write('x' * {MAX_ANSWER_BYTES + 1})",
        "say(result='0x02')",
        f"sys.stderr.write('x' * 10_000_000); say(result={signed(nonce=6)!r})",
    ],
)
async def test_a_command_that_talks_nonsense_is_refused(tmp_path, body):
    with pytest.raises(Refused) as refusal:
        await ExternalSigner(script(tmp_path, body), ACCOUNT.address).sign_transaction(FIELDS)
    assert refusal.value.code is Code.SIGNER_REFUSED
    assert refusal.value.why


async def test_a_signers_address_shows_no_credentials():
    signer = ExternalSigner("http://user:hunter2@127.0.0.1:1/hunter2?key=hunter2", ACCOUNT.address)
    with pytest.raises(Unavailable) as gone:
        await signer.sign_transaction(FIELDS)
    assert "hunter2" not in json.dumps(gone.value.to_json())


async def test_a_hostile_signer_sends_nothing(registry, local_chain, signer):
    """The other recipient, nonce, chain and key of a signer never reach the chain."""
    from capdex.ipld.cid import Cid

    cid = Cid.of(b"x")
    priced = await registry.price(signer.address, "publish", "note", "1.0.0", str(cid), cid.digest)

    class Hostile:
        address = signer.address

        def __init__(self, **changes):
            self.changes = changes

        async def sign_transaction(self, fields):
            wrong = await signer.sign_transaction(fields | self.changes)
            return check_transaction("0x" + wrong.raw.hex(), fields, self.address)

        async def sign_message(self, message):
            return await signer.sign_message(message)

        async def sign_typed_data(self, document):
            return await signer.sign_typed_data(document)

    remembered: list[Sent] = []
    for changes in ({"nonce": 7}, {"to": OTHER.address}, {"chainId": 1}, {"value": 10**18}):
        with pytest.raises(Refused):
            await submit(registry.chain, Hostile(**changes), priced, on_signed=remembered.append)
    assert remembered == []
    assert local_chain.call("eth_getTransactionCount", signer.address, "pending") == "0x0"


# typed data -------------------------------------------------------------------------------------

DOCUMENT = {
    "types": {
        "EIP712Domain": [{"name": "name", "type": "string"}],
        "Publication": [{"name": "name", "type": "string"}],
    },
    "primaryType": "Publication",
    "domain": {"name": "capdex"},
    "message": {"name": "note"},
}


@pytest.mark.parametrize("method", ["eth_signTypedData_v4", "account_signTypedData"])
async def test_a_signer_signs_typed_data_under_either_name(method):
    def answer(asked, params):
        if asked != method:
            return error(-32601)
        assert params == [ACCOUNT.address, DOCUMENT]
        return "0x" + bytes(ACCOUNT.sign_typed_data(full_message=params[1]).signature).hex()

    async with signer_at(answer) as url:
        given = await ExternalSigner(url, ACCOUNT.address).sign_typed_data(DOCUMENT)
    assert given == await LocalSigner(bytes(ACCOUNT.key)).sign_typed_data(DOCUMENT)


@pytest.mark.parametrize("account", [OTHER, None])
async def test_typed_data_signed_by_another_account_is_refused(account):
    def answer(_, __):
        if account is None:
            return "0x" + "00" * 65
        return "0x" + bytes(account.sign_typed_data(full_message=DOCUMENT).signature).hex()

    async with signer_at(answer) as url:
        with pytest.raises(Refused) as refusal:
            await ExternalSigner(url, ACCOUNT.address).sign_typed_data(DOCUMENT)
    assert refusal.value.code is Code.SIGNER_REFUSED
