"""The registry's client on a real Anvil."""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest
from eth_account import Account

from capdex.encoding.abi import parse_address
from capdex.errors import Code, InvalidInput, Refused, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.registry.events import Published
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.keys.signer import LocalSigner
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.submit import submit

ANVIL_KEY = "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"


async def price(registry, signer, name="note", semver="1.0.0", data=b"bytes", **options):
    cid = Cid.of(data)
    return await registry.price(
        signer.address, "publish", name, semver, str(cid), cid.digest, **options
    )


async def send(registry, signer, **options):
    return await submit(registry.chain, signer, await price(registry, signer, **options))


async def publish(registry, signer, **options):
    sent = await send(registry, signer, **options)
    return registry.receipt(await confirm(registry.chain, sent.tx_hash))


async def test_a_publication_is_mined_and_its_event_decoded(registry, signer):
    receipt = await publish(registry, signer)
    assert isinstance(receipt.events[-1], Published)
    assert receipt.events[-1].announcement.cap_uri == "did:nuwa:cap:note@1.0.0"
    assert receipt.events[-1].announcement.publisher == signer.address
    assert receipt.fee_wei > 0
    assert await registry.owner_of("note") == signer.address
    assert await registry.name_of_skeleton("n0te") == "note"
    found = await registry.find_publication("note", "1.0.0")
    assert found is not None
    assert "0x" + found.position.tx_hash.hex() == receipt.tx_hash


async def test_reads_tell_absence_from_presence(registry, signer):
    assert await registry.owner_of("note") is None
    assert await registry.release("note", "1.0.0") is None
    assert await registry.releases("note") == []
    assert await registry.name_of_skeleton("note") is None
    assert await registry.find_publication("note", "1.0.0") is None
    with pytest.raises(InvalidInput) as missing:
        await registry.index_of("note", "1.0.0")
    assert missing.value.code is Code.NOT_FOUND
    await publish(registry, signer)
    await publish(registry, signer, semver="1.1.0")
    assert [r.semver for r in await registry.releases("note")] == ["1.0.0", "1.1.0"]
    assert await registry.read("releaseCount", "note") == 2
    assert await registry.index_of("note", "1.1.0") == 1


async def test_a_second_publication_of_a_version_is_refused_by_its_name(registry, signer):
    await publish(registry, signer)
    with pytest.raises(InvalidInput) as refusal:
        await publish(registry, signer, data=b"others")
    assert refusal.value.code is Code.VERSION_EXISTS


async def test_another_accounts_name_is_refused(registry, signer, local_chain):
    await publish(registry, signer)
    with pytest.raises(Refused) as owned:
        await publish(registry, local_chain.signer(), semver="2.0.0")
    assert owned.value.code is Code.NOT_OWNER
    with pytest.raises(Refused) as looks_alike:
        await publish(registry, local_chain.signer(), name="n0te")
    assert looks_alike.value.code is Code.NAME_TAKEN
    assert '"note"' in looks_alike.value.message


async def test_what_the_contract_refuses_is_said_with_its_values(registry, signer):
    with pytest.raises(InvalidInput) as refusal:
        await registry.price(signer.address, "publish", "note", "1.0.0", "bafkno", b"\1" * 32)
    assert refusal.value.code is Code.REVERTED
    assert refusal.value.details is not None
    assert refusal.value.details["error"] == "CidMismatch"
    assert "bafkno" in refusal.value.why


async def test_an_empty_account_is_told_how_much_it_needs(registry, local_chain):
    poor = local_chain.signer(wei=0)
    with pytest.raises(Refused) as refusal:
        await publish(registry, poor)
    assert refusal.value.code is Code.EMPTY_ACCOUNT
    assert poor.address in refusal.value.message
    assert refusal.value.details is not None
    assert int(refusal.value.details["needed_wei"]) > 0


async def test_a_fee_over_the_cap_is_refused(registry, signer):
    with pytest.raises(Refused) as refusal:
        await price(registry, signer, fee_cap_wei=1000)
    assert refusal.value.code is Code.FEE_OVER_CAP
    assert "cap" in refusal.value.message


async def test_the_cap_bounds_what_a_transaction_may_ever_cost(registry, signer):
    free = await price(registry, signer)
    cap = free.expected_fee_wei * 13 // 10
    tight = await price(registry, signer, fee_cap_wei=cap)
    assert tight.max_fee_wei <= cap < free.max_fee_wei


async def test_the_wrong_chain_is_refused(local_chain, tmp_path):
    with pytest.raises(Refused) as refusal:
        async with Chain.connect(local_chain.url, 1, state_dir=tmp_path):
            pass
    assert refusal.value.code is Code.WRONG_CHAIN


async def test_an_address_without_code_is_no_registry(local_chain, tmp_path):
    nowhere = Account.create().address
    with pytest.raises(UsageError) as refusal:
        async with Registry.connect(local_chain.url, nowhere, 31337, state_dir=tmp_path):
            pass
    assert refusal.value.code is Code.NO_CONTRACT


async def test_an_endpoint_that_is_down_is_named_without_its_credentials(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    url = f"http://user:hunter2@127.0.0.1:{port}/v3/hunter2?key=hunter2"
    with pytest.raises(Unavailable) as refusal:
        async with Chain.connect(url, 1, state_dir=tmp_path):
            pass
    assert refusal.value.code is Code.RPC_UNAVAILABLE
    assert f"127.0.0.1:{port}" in refusal.value.message
    assert "hunter2" not in repr(refusal.value) + str(refusal.value.to_json()) + caplog.text


async def test_a_public_key_publishes_on_no_chain_but_the_development_one(local_chain, tmp_path):
    public = LocalSigner(Account.from_key(ANVIL_KEY).key)
    local_chain.call("anvil_setChainId", 11155111)
    async with Chain.connect(local_chain.url, 11155111, state_dir=tmp_path) as chain:
        chain.confirmations = 1
        with pytest.raises(Refused) as refusal:
            await chain.price(public.address, public.address, "0x")
        assert refusal.value.code is Code.KEY_EXPOSED
        own = local_chain.signer()
        priced = await chain.price(own.address, own.address, "0x")
        with pytest.raises(Refused):
            await submit(chain, public, priced)
        assert await confirm(chain, (await submit(chain, own, priced)).tx_hash)


async def test_concurrent_publications_of_one_account_each_get_their_nonce(
    registry, signer, local_chain, tmp_path
):
    async def one(number):
        # A client of its own each, as separate processes would have.
        async with Registry.connect(
            local_chain.url, registry.address, 31337, state_dir=tmp_path / "state"
        ) as mine:
            return await publish(mine, signer, name=f"note-{'abcde'[number]}")

    receipts = await asyncio.gather(*map(one, range(5)))
    assert sorted(receipt.events[-1].sequence for receipt in receipts) == [1, 2, 3, 4, 5]


async def test_a_transaction_that_is_not_mined_times_out_and_can_be_resumed(
    registry, signer, local_chain
):
    local_chain.call("evm_setAutomine", False)
    sent = await send(registry, signer)
    with pytest.raises(Unavailable) as late:
        await confirm(registry.chain, sent.tx_hash, timeout_s=0.05)
    assert late.value.code is Code.TIMEOUT
    assert sent.tx_hash in late.value.message
    assert await registry.chain.knows(sent.tx_hash)
    local_chain.call("evm_mine")
    assert (await confirm(registry.chain, sent.tx_hash)).tx_hash == sent.tx_hash


async def test_a_reverted_transaction_says_why(registry, signer, local_chain):
    local_chain.call("evm_setAutomine", False)
    await send(registry, signer)
    second = await send(registry, signer)
    local_chain.call("evm_mine")
    with pytest.raises(InvalidInput) as refusal:
        await confirm(registry.chain, second.tx_hash)
    assert refusal.value.code is Code.VERSION_EXISTS


@pytest.mark.parametrize("text", ["", "0x12", "0x" + "zz" * 20, "note"])
def test_what_is_no_address_is_a_usage_error(text):
    with pytest.raises(UsageError):
        parse_address(text)


def test_an_address_with_a_wrong_checksum_is_refused():
    good = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
    assert parse_address(good) == parse_address(good.lower()) == good
    with pytest.raises(UsageError, match="checksum"):
        parse_address(good.replace("Fd6e", "fd6e"))
