"""Publishing on a real Anvil: once, however often and wherever it is interrupted."""

from __future__ import annotations

import asyncio
import hashlib
import logging

import pytest
from eth_account import Account

from capdex.errors import Code, InvalidInput, Refused, Unavailable, UsageError, VerificationFailure
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.registry.events import PUBLISHED, LogHead
from publisher.authoring.scaffold import scaffold
from publisher.authoring.sign import sign
from publisher.ethereum.contract import Receipt, raw_log
from publisher.ethereum.transaction import Sent
from publisher.keys.signer import LocalSigner
from publisher.progress import Outcome, Served, Uploaded
from publisher.publish.plan import make_plan
from publisher.publish.preflight import examine
from publisher.publish.publish import carry_out
from publisher.publish.upload import Delivery


class Killed(BaseException):
    """What SIGKILL looks like from inside: nothing after it runs."""


async def package(signer, name="note", version="1.0.0", description="Notes"):
    text = scaffold(name, version=version, description=description)
    return await sign(text.encode(), signer, chain_id=31337)


async def plan(data, *, registry, publisher):
    """The plan for one package; raises why there is none."""
    found = await examine(data, registry=registry, publisher=publisher)
    planned = await make_plan([found], registry=registry, publisher=publisher)
    for error in planned.refused.values():
        raise error
    return planned


async def act(planned, registry, signer, blocks, **options):
    """The outcome of a plan for one package; raises why there is none."""
    delivery = Delivery(blocks)
    (end,) = await carry_out(
        planned, registry=registry, signer=signer, delivery=delivery, **options
    )
    if isinstance(end, Outcome):
        return end
    raise end


async def publish(data, registry, signer, blocks, **options):
    planned = await plan(data, registry=registry, publisher=signer.address)
    return await act(planned, registry, signer, blocks, **options)


async def events(registry):
    logs = await registry.chain.web3.eth.get_logs({"address": registry.address, "fromBlock": 0})
    return [raw_log(log) for log in logs]


def kill_at(kind):
    def on_step(step):
        if isinstance(step, kind):
            raise Killed

    return on_step


async def test_a_package_is_published_step_by_step(registry, signer, blocks):
    data, steps = await package(signer), []
    planned = await plan(data, registry=registry, publisher=signer.address)
    (candidate,) = planned.candidates
    (transaction,) = planned.transactions
    assert candidate.claims_name

    async def served(uri):
        return uri == "did:nuwa:cap:note@1.0.0"

    outcome = await act(planned, registry, signer, blocks, served=served, on_step=steps.append)
    assert [type(step) for step in steps] == [Uploaded, Sent, Receipt, Served]
    assert outcome.cap_uri == "did:nuwa:cap:note@1.0.0"
    assert outcome.sha256 == hashlib.sha256(data).hexdigest()
    assert outcome.cid == str(Cid.of(data))
    assert not outcome.already
    assert outcome.served_after_s is not None
    assert outcome.gas_used is not None
    assert outcome.gas_used <= transaction.gas
    assert await blocks.get(Cid.of(data)) == data
    release = await registry.release("note", "1.0.0")
    assert release.sha256.hex() == outcome.sha256


async def test_publishing_again_finds_what_is_there(registry, signer, blocks):
    data = await package(signer)
    first = await publish(data, registry, signer, blocks)
    planned = await plan(data, registry=registry, publisher=signer.address)
    assert planned.candidates[0].already
    assert planned.transactions == ()
    again = await act(planned, registry, signer, blocks)
    assert again.already
    assert (again.tx_hash, again.block_number) == (first.tx_hash, first.block_number)
    assert len(await events(registry)) == 1


async def test_publishing_again_puts_lost_bytes_back(registry, signer, blocks, tmp_path):
    data = await package(signer)
    await publish(data, registry, signer, blocks)
    for block in (tmp_path / "blocks").rglob("*"):
        if block.is_file():
            block.unlink()
    await publish(data, registry, signer, blocks)
    assert await blocks.get(Cid.of(data)) == data


async def test_a_plan_is_a_dry_run_that_another_signer_can_send(registry, signer, blocks):
    planned = await plan(await package(signer), registry=registry, publisher=signer.address)
    transaction = planned.transactions[0].to_json()
    assert transaction["to"] == registry.address
    assert transaction["value"] == 0
    assert transaction["gas"] > 0
    assert transaction["data"].startswith("0x")
    assert await events(registry) == []
    with pytest.raises(Unavailable):
        await blocks.get(Cid.of(planned.candidates[0].package.data))


async def test_other_bytes_under_a_version_are_refused(registry, signer, blocks):
    await publish(await package(signer), registry, signer, blocks)
    with pytest.raises(InvalidInput) as refusal:
        await plan(
            await package(signer, description="Other"), registry=registry, publisher=signer.address
        )
    assert refusal.value.code is Code.VERSION_EXISTS


async def test_a_name_belongs_to_its_first_publisher(registry, signer, blocks, local_chain):
    await publish(await package(signer), registry, signer, blocks)
    second = local_chain.signer()
    with pytest.raises(Refused) as owned:
        await plan(
            await package(second, version="2.0.0"), registry=registry, publisher=second.address
        )
    assert owned.value.code is Code.NAME_TAKEN
    assert signer.address in owned.value.message
    with pytest.raises(Refused) as looks_alike:
        await plan(await package(second, name="n0te"), registry=registry, publisher=second.address)
    assert looks_alike.value.code is Code.NAME_TAKEN
    assert signer.address in looks_alike.value.message


async def test_what_no_node_would_serve_costs_nothing(registry, signer, local_chain):
    unsigned = scaffold("note").encode()
    with pytest.raises(VerificationFailure) as refusal:
        await plan(unsigned, registry=registry, publisher=signer.address)
    assert refusal.value.details["reason"] == "UNSIGNED"
    foreign = await package(local_chain.signer())
    with pytest.raises(VerificationFailure) as unbound:
        await plan(foreign, registry=registry, publisher=signer.address)
    assert unbound.value.details["reason"] == "NOT_BOUND"
    with pytest.raises(InvalidInput) as broken:
        await plan(b"metadata: 1", registry=registry, publisher=signer.address)
    assert broken.value.details["problems"]


async def test_an_empty_account_is_told_before_anything_is_uploaded(registry, local_chain):
    poor = local_chain.signer(wei=0)
    with pytest.raises(Refused) as refusal:
        await plan(await package(poor), registry=registry, publisher=poor.address)
    assert refusal.value.code is Code.EMPTY_ACCOUNT
    assert poor.address in refusal.value.fix


async def test_another_accounts_key_does_not_carry_out_a_plan(
    registry, signer, blocks, local_chain
):
    planned = await plan(await package(signer), registry=registry, publisher=signer.address)
    with pytest.raises(UsageError):
        await act(planned, registry, local_chain.signer(), blocks)


@pytest.mark.parametrize("moment", [Uploaded, Sent, Receipt, Served])
async def test_a_killed_publication_is_finished_by_running_it_again(
    registry, signer, blocks, moment
):
    async def served(_uri):
        return True

    data = await package(signer)
    with pytest.raises(Killed):
        await publish(data, registry, signer, blocks, served=served, on_step=kill_at(moment))
    outcome = await publish(data, registry, signer, blocks, served=served)
    assert outcome.tx_hash is not None
    assert outcome.served_after_s is not None
    assert len(await events(registry)) == 1
    again = await publish(data, registry, signer, blocks)
    assert again.already
    assert again.tx_hash == outcome.tx_hash


async def test_a_transaction_that_waits_for_its_block_is_waited_for_not_sent_twice(
    registry, signer, blocks, local_chain
):
    data = await package(signer)
    local_chain.call("evm_setAutomine", False)
    with pytest.raises(Killed):
        await publish(data, registry, signer, blocks, on_step=kill_at(Sent))
    planned = await plan(data, registry=registry, publisher=signer.address)
    resumed = planned.candidates[0].resumes
    assert resumed is not None
    assert planned.transactions == ()
    local_chain.call("evm_mine")
    outcome = await act(planned, registry, signer, blocks)
    assert outcome.tx_hash == resumed.tx_hash
    nonce = local_chain.call("eth_getTransactionCount", signer.address, "latest")
    assert int(nonce, 16) == 1


async def test_a_journal_entry_that_never_left_or_is_garbage_is_ignored(
    registry, signer, blocks, tmp_path
):
    data = await package(signer)
    with pytest.raises(Killed):
        await publish(data, registry, signer, blocks, on_step=kill_at(Sent))
    (entry,) = (tmp_path / "state" / "sent").iterdir()
    for garbage in ("", "{}", '{"tx_hash": "0x00", "nonce": 1, "fingerprint": "x"}', "[1]"):
        entry.write_text(garbage)
        assert (await plan(data, registry=registry, publisher=signer.address)).candidates[0].already


async def test_the_same_release_published_twice_at_once_is_one_event(
    registry, signer, blocks, local_chain
):
    data = await package(signer)
    plans = [await plan(data, registry=registry, publisher=signer.address) for _ in range(2)]
    assert not any(planned.candidates[0].already for planned in plans)
    local_chain.call("evm_setAutomine", False)
    sent = asyncio.Semaphore(0)

    def on_step(step):
        if isinstance(step, Sent):
            sent.release()

    running = [
        asyncio.create_task(act(planned, registry, signer, blocks, on_step=on_step))
        for planned in plans
    ]
    for _ in running:
        await sent.acquire()
    local_chain.call("evm_mine")
    outcomes = await asyncio.gather(*running)
    # The chain may take the second for the first once more: then both wait for the same one.
    assert not all(outcome.already for outcome in outcomes)
    assert len({outcome.tx_hash for outcome in outcomes}) == 1
    assert len(await events(registry)) == 1


async def test_five_publications_of_one_account_at_once_are_five_events(registry, signer, blocks):
    names = [f"note-{letter}" for letter in "abcde"]
    outcomes = await asyncio.gather(
        *[publish(await package(signer, name=name), registry, signer, blocks) for name in names]
    )
    assert len({outcome.tx_hash for outcome in outcomes}) == 5
    logs = await events(registry)
    assert [log.topics[0] for log in logs] == [PUBLISHED] * 5
    head = LogHead()
    for log in logs:
        head = head.fold(log)
    assert head.count == 5


async def test_a_storage_that_keeps_other_bytes_stops_before_the_chain(registry, signer, tmp_path):
    class Liar(BlockDirectory):
        async def get(self, cid):
            return b"others"

    liar = Liar(tmp_path / "blocks")
    with pytest.raises(Unavailable) as refusal:
        await publish(await package(signer), registry, signer, liar)
    assert refusal.value.code is Code.IPFS_UNAVAILABLE
    assert await events(registry) == []


async def test_a_node_that_does_not_serve_the_release_is_no_failure(registry, signer, blocks):
    async def down(_uri):
        raise Unavailable("the node is down", Code.NODE_UNAVAILABLE)

    outcome = await publish(
        await package(signer), registry, signer, blocks, served=down, served_timeout_s=0.01
    )
    assert outcome.tx_hash is not None
    assert outcome.served_after_s is None


async def test_no_key_is_ever_logged(registry, local_chain, blocks, caplog):
    account = Account.create()
    local_chain.call("anvil_setBalance", account.address, hex(10**18))
    signer = LocalSigner(account)
    caplog.set_level(logging.DEBUG)
    await publish(await package(signer), registry, signer, blocks)
    assert account.key.hex() not in caplog.text
