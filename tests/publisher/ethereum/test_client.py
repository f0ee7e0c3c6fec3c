"""Money on its way, on a real Anvil: stuck, dropped, replaced, reorganised; one event stays."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace
from functools import partial

import pytest
from aiohttp import web
from eth_account import Account

from capdex.errors import Code, InvalidInput, Refused, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex_publisher.ethereum.client import Chain, Patience
from capdex_publisher.ethereum.transaction import Sent
from capdex_publisher.keys.signer import LocalSigner
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.pending import PendingTransaction
from capdex_publisher.tx.submit import replace as send_dearer
from capdex_publisher.tx.submit import submit

GWEI = 10**9
CID = Cid.of(b"bytes")
# No time is lost in tests: everything is mended at the first look.
AT_ONCE = Patience(look_s=0.0, underpriced_s=0.0, stuck_s=0.0, lost_s=0.0)
# A chain that is busy says for a moment that it does not know what it mined just now: only what a
# test loses on purpose is called lost at once.
SOON = Patience(look_s=0.0, underpriced_s=0.0, stuck_s=3600.0, lost_s=3600.0)
LOST = replace(SOON, lost_s=0.0)


@pytest.fixture
async def registry(chain, deployment):
    chain.patience = SOON
    return Registry(chain, deployment.registry, start_block=deployment.block_number)


@pytest.fixture
def held(local_chain, registry):
    """No block is made unless a test makes one."""
    local_chain.call("evm_setAutomine", False)
    return local_chain


class Errand:
    """Publishing note 1.0.0, with everything that was signed for it."""

    def __init__(self, registry, signer, name="note"):
        self.registry, self.signer, self.name = registry, signer, name
        self.signed = []

    async def send(self, *, spare_gas=0, **options):
        priced = await self.registry.price(
            self.signer.address, "publish", self.name, "1.0.0", str(CID), CID.digest, **options
        )
        priced = replace(priced, gas=priced.gas + spare_gas)
        return await submit(self.registry.chain, self.signer, priced, on_signed=self.signed.append)

    async def done(self):
        return await self.registry.release(self.name, "1.0.0") is not None

    async def wait(self, sent, **options):
        return await confirm(
            self.registry.chain,
            sent,
            signer=self.signer,
            on_signed=self.signed.append,
            is_done=self.done,
            **({"timeout_s": 60} | options),
        )

    async def resign(self, count, waiting=None):
        """Return when `count` transactions have been signed; raise what ended `waiting` before."""
        ended = waiting.done if waiting is not None else lambda: False
        await until(lambda: len(self.signed) >= count or ended())
        if len(self.signed) < count:
            await waiting
            pytest.fail("the wait ended without a second signature")


@pytest.fixture
def errand(registry, signer):
    return Errand(registry, signer)


async def events_of(registry, name="note"):
    return [x for x in await registry.history(name) if hasattr(x, "announcement")]


def count(local_chain, address, block="latest"):
    return int(local_chain.call("eth_getTransactionCount", address, block), 16)


async def until(condition):
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never came to pass")


async def end_of(wait, words):
    """The error of a wait in vain that has seen what `words` say; a busy machine gets longer."""
    for timeout_s in (0.5, 5.0, 50.0):
        with pytest.raises(Unavailable) as late:
            await wait(timeout_s=timeout_s)
        if words in late.value.why:
            return late.value
    pytest.fail(f"not seen, but: {late.value.why}")


async def until_mined(local_chain, waiting, blocks=50):
    """Make a block now and then until a wait ends."""
    for _ in range(blocks * 20):
        local_chain.call("evm_mine")
        done, _ = await asyncio.wait([waiting], timeout=0.1)
        if done:
            return waiting.result()
    pytest.fail("it was never mined")


# stuck --------------------------------------------------------------------------------------------


async def test_a_stuck_transaction_is_replaced_by_one_an_eighth_dearer(errand, held, registry):
    first = await errand.send()
    registry.chain.patience = Patience(look_s=0.0, stuck_s=0.0)
    waiting = asyncio.create_task(errand.wait(first))
    await errand.resign(2)
    registry.chain.patience = SOON
    await until(lambda: held.call("eth_getTransactionByHash", errand.signed[-1].tx_hash))
    receipt = await until_mined(held, waiting)
    old, new = errand.signed[0].transaction, errand.signed[-1].transaction
    assert {sent.nonce for sent in errand.signed} == {0}
    assert 8 * new.max_fee_per_gas >= 9 * old.max_fee_per_gas
    assert 8 * new.max_priority_fee_per_gas >= 9 * old.max_priority_fee_per_gas
    assert errand.signed[-1].earlier[-1] == first.tx_hash
    assert receipt.tx_hash in [sent.tx_hash for sent in errand.signed[1:]]
    assert len(await events_of(registry)) == 1
    assert count(held, errand.signer.address) == 1


async def test_a_transaction_below_a_risen_base_fee_is_replaced(errand, held, registry):
    first = await errand.send()
    held.call("anvil_setNextBlockBaseFeePerGas", hex(20 * GWEI))
    waiting = asyncio.create_task(errand.wait(first))
    await errand.resign(2)
    raised = errand.signed[-1]
    assert raised.nonce == first.nonce
    assert raised.transaction.max_fee_per_gas > 20 * GWEI
    await until(lambda: held.call("eth_getTransactionByHash", raised.tx_hash))
    receipt = await until_mined(held, waiting)
    assert receipt.tx_hash == raised.tx_hash
    assert len(await events_of(registry)) == 1


async def test_a_replacement_never_goes_over_the_cap(errand, held, registry):
    first = await errand.send()
    cap = first.transaction.max_fee_wei * 9 // 8
    tight = Sent(
        first.tx_hash, first.nonce, replace(first.transaction, fee_cap_wei=cap), first.signed_at
    )
    held.call("anvil_setNextBlockBaseFeePerGas", hex(50 * GWEI))
    with pytest.raises(Unavailable) as late:
        await errand.wait(tight, timeout_s=1.0)
    assert late.value.code is Code.TIMEOUT
    assert "over the cap" in late.value.why
    assert len(errand.signed) == 1
    # What was sent stays sent: with a quieter chain it is mined, and the same wait finds it.
    held.call("anvil_setNextBlockBaseFeePerGas", hex(GWEI))
    held.call("evm_mine")
    assert (await errand.wait(first)).tx_hash == first.tx_hash


async def test_a_replacement_that_the_signer_refuses_leaves_the_first_one(errand, held, registry):
    first = await errand.send()
    registry.chain.patience = AT_ONCE

    class Tired:
        address = errand.signer.address
        asked = 0

        async def sign_transaction(self, fields):
            Tired.asked += 1
            raise Refused("the external signer said no", Code.SIGNER_REFUSED)

        async def sign_message(self, message):
            return await errand.signer.sign_message(message)

        async def sign_typed_data(self, document):
            return await errand.signer.sign_typed_data(document)

    async def wait(timeout_s):
        Tired.asked = 0
        chain, done = registry.chain, errand.done
        return await confirm(chain, first, signer=Tired(), is_done=done, timeout_s=timeout_s)

    await end_of(wait, "the external signer said no")
    assert Tired.asked == 1
    receipt = await until_mined(held, asyncio.create_task(wait(60.0)))
    assert receipt.tx_hash == first.tx_hash


async def test_what_an_earlier_run_left_stuck_is_replaced_by_the_next(errand, held, registry):
    first = await errand.send()
    pending = PendingTransaction(registry, "publish", "note", "1.0.0", "same")
    pending.save(first)
    held.call("anvil_setNextBlockBaseFeePerGas", hex(20 * GWEI))
    recalled = await pending.load()
    assert recalled == first
    waiting = asyncio.create_task(errand.wait(recalled))
    await errand.resign(2)
    await until(lambda: held.call("eth_getTransactionByHash", errand.signed[-1].tx_hash))
    receipt = await until_mined(held, waiting)
    assert receipt.tx_hash == errand.signed[-1].tx_hash != first.tx_hash
    assert len(await events_of(registry)) == 1


async def test_whichever_hash_of_a_nonce_is_mined_is_found(errand, held, registry):
    first = await errand.send()
    later = Sent("0x" + "11" * 32, 0, first.transaction, first.signed_at, (first.tx_hash,))
    held.call("evm_mine")
    assert (await errand.wait(later)).tx_hash == first.tx_hash


async def test_a_transaction_behind_another_of_its_account_is_not_replaced(registry, signer, held):
    first, second = Errand(registry, signer), Errand(registry, signer, "other")
    await first.send()
    behind = await second.send()
    registry.chain.patience = AT_ONCE
    await end_of(partial(second.wait, behind), "waits before it")
    assert len(second.signed) == 1


# lost ---------------------------------------------------------------------------------------------


async def test_a_dropped_transaction_is_sent_again_under_its_nonce(errand, held, registry):
    first = await errand.send()
    held.call("anvil_dropTransaction", first.tx_hash)
    registry.chain.patience = LOST
    waiting = asyncio.create_task(errand.wait(first))
    await errand.resign(2)
    registry.chain.patience = SOON
    receipt = await until_mined(held, waiting)
    assert errand.signed[-1].nonce == first.nonce == 0
    assert receipt.tx_hash in errand.signed[-1].hashes
    assert len(await events_of(registry)) == 1
    assert count(held, errand.signer.address) == 1


async def test_what_was_dropped_behind_another_leaves_no_gap(registry, signer, held):
    """When a node forgets two, whoever comes first takes the lower nonce."""
    one, two = Errand(registry, signer), Errand(registry, signer, "other")
    first, second = await one.send(), await two.send()
    assert (first.nonce, second.nonce) == (0, 1)
    held.call("anvil_dropAllTransactions")
    registry.chain.patience = LOST
    later = asyncio.create_task(two.wait(second))
    await two.resign(2)
    assert two.signed[-1].nonce == 0
    registry.chain.patience = SOON
    sooner = asyncio.create_task(one.wait(first))
    await until_mined(held, later)
    registry.chain.patience = LOST
    await one.resign(2)
    registry.chain.patience = SOON
    await until_mined(held, sooner)
    assert len(await events_of(registry)) == len(await events_of(registry, "other")) == 1
    assert count(held, signer.address) == count(held, signer.address, "pending") == 2


async def test_a_nonce_that_another_program_used_is_noticed(errand, held, registry, chain):
    first = await errand.send()
    priced = await chain.price(errand.signer.address, errand.signer.address, "0x")
    dearer = priced.raised(await chain.fees(), funds_wei=10**20).fields(first.nonce)
    rival = await errand.signer.sign_transaction(
        dearer | {"maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**10}
    )
    assert await chain.send_raw(rival.raw) is None
    held.call("evm_mine")
    chain.patience = LOST
    waiting = asyncio.create_task(errand.wait(first))
    await errand.resign(2)
    chain.patience = SOON
    receipt = await until_mined(held, waiting)
    assert [sent.nonce for sent in errand.signed] == [0, 1]
    assert receipt.tx_hash == errand.signed[-1].tx_hash
    assert len(await events_of(registry)) == 1


async def test_a_cancellation_that_waits_under_the_nonce_is_not_fought(
    errand, held, registry, chain
):
    first = await errand.send()
    priced = await chain.price(errand.signer.address, errand.signer.address, "0x")
    rival = await errand.signer.sign_transaction(
        priced.fields(0) | {"maxFeePerGas": 10**11, "maxPriorityFeePerGas": 10**10}
    )
    assert await chain.send_raw(rival.raw) is None
    await end_of(partial(errand.wait, first), "waits under its nonce")
    assert len(errand.signed) == 1


async def test_before_it_sends_again_it_looks_whether_all_is_done(registry, signer, held, chain):
    """The same release, published by another process under the nonce of the lost transaction."""
    lost, other = Errand(registry, signer), Errand(registry, signer)
    first = await lost.send()
    held.call("anvil_dropTransaction", first.tx_hash)
    await other.send(spare_gas=1_000)
    held.call("evm_mine")
    chain.patience = LOST
    with pytest.raises(InvalidInput) as done:
        await lost.wait(first)
    assert done.value.code is Code.ALREADY_DONE
    assert len(lost.signed) == 1
    assert len(await events_of(registry)) == 1


async def test_without_a_signer_a_lost_transaction_is_told_not_sent_again(errand, held, registry):
    first = await errand.send()
    held.call("anvil_dropTransaction", first.tx_hash)
    await end_of(partial(confirm, registry.chain, first), "dropped")
    assert count(held, errand.signer.address, "pending") == 0


# mined, and then not ------------------------------------------------------------------------------


async def test_a_block_that_is_reorganised_away_is_not_believed(errand, local_chain, registry):
    registry.chain.confirmations = 3
    local_chain.call("anvil_mine", hex(2))
    first = await errand.send()
    waiting = asyncio.create_task(errand.wait(first))
    await until(lambda: local_chain.call("eth_getTransactionReceipt", first.tx_hash))
    local_chain.call("anvil_reorg", 1, [])
    assert await registry.chain.receipt(first.tx_hash) is None
    registry.chain.patience = LOST
    await errand.resign(2, waiting)
    registry.chain.patience = SOON
    receipt = await until_mined(local_chain, waiting)
    assert receipt.tx_hash in errand.signed[-1].hashes
    assert len(await events_of(registry)) == 1
    head = await registry.chain.head()
    assert head >= receipt.block_number + 2


async def test_the_depth_of_a_block_on_another_branch_does_not_count(
    registry, signer, local_chain, endpoint_before, tmp_path
):
    told: list[int] = []

    def answer(method, params):
        if method != "eth_getTransactionReceipt" or told:
            return None
        reply = local_chain.raw(method, *params)
        told.append(int(reply["result"]["blockNumber"], 16))
        branch = {"blockNumber": hex(told[0] - 1), "blockHash": "0x" + "11" * 32}
        return reply | {"result": reply["result"] | branch}

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as branched,
    ):
        branched.chain.confirmations = 2
        errand = Errand(branched, signer)
        waiting = asyncio.create_task(errand.wait(await errand.send()))
        receipt = await until_mined(local_chain, waiting)
    assert [receipt.block_number] == told


async def test_a_block_without_followers_is_not_deep_enough(errand, registry):
    registry.chain.confirmations = 2
    sent = await errand.send()
    late = await end_of(partial(errand.wait, sent), "it needs 1 more block")
    assert late.code is Code.TIMEOUT
    assert "2 blocks deep" in late.message
    assert "pays nothing twice" in late.fix
    assert "--confirmations 1" in late.fix


async def test_what_enters_a_block_between_two_questions_is_not_lost(errand, registry, monkeypatch):
    sent = await errand.send()
    receipt, early = registry.chain.receipt, [None]

    async def asked_early(tx_hash):
        return early.pop() if early else await receipt(tx_hash)

    monkeypatch.setattr(registry.chain, "receipt", asked_early)
    assert (await errand.wait(sent)).tx_hash == sent.tx_hash
    assert not early


async def test_public_chains_are_given_two_confirmations(local_chain, tmp_path):
    async with Chain.connect(local_chain.url, 31337, state_dir=tmp_path) as chain:
        assert chain.confirmations == 1
    local_chain.call("anvil_setChainId", 11155111)
    async with Chain.connect(local_chain.url, 11155111, state_dir=tmp_path) as chain:
        assert chain.confirmations == 2


# nonces -------------------------------------------------------------------------------------------


async def test_a_price_of_yesterday_is_made_anew_when_the_base_fee_has_risen(
    errand, held, registry
):
    priced = await registry.price(
        errand.signer.address, "publish", "note", "1.0.0", str(CID), CID.digest
    )
    held.call("anvil_setNextBlockBaseFeePerGas", hex(15 * GWEI))
    sent = await submit(registry.chain, errand.signer, priced)
    assert sent.transaction.max_fee_per_gas >= 15 * GWEI
    assert sent.transaction.max_fee_wei <= priced.fee_cap_wei


async def test_a_base_fee_that_has_risen_over_the_cap_is_told_as_that(errand, held, registry):
    priced = await registry.price(
        errand.signer.address, "publish", "note", "1.0.0", str(CID), CID.digest
    )
    held.call("anvil_setNextBlockBaseFeePerGas", hex(1000 * GWEI))
    with pytest.raises(Refused) as over:
        await submit(registry.chain, errand.signer, priced)
    assert over.value.code is Code.FEE_OVER_CAP


async def test_a_receipt_of_another_transaction_is_not_believed(
    errand, registry, local_chain, endpoint_before, tmp_path
):
    sent = await errand.send()
    await errand.wait(sent)

    def answer(method, params):
        if method == "eth_getTransactionReceipt":
            return local_chain.raw(method, sent.tx_hash)
        return None

    async with (
        endpoint_before(answer) as url,
        Chain.connect(url, 31337, state_dir=tmp_path) as other,
    ):
        with pytest.raises(Unavailable, match="no block was seen") as late:
            await confirm(other, "0x" + "11" * 32, timeout_s=2.0)
    assert "another transaction" in late.value.why


async def test_a_key_sends_only_what_was_priced_for_it(errand, registry, local_chain, chain):
    priced = await chain.price(errand.signer.address, errand.signer.address, "0x")
    for signer, transaction in (
        (local_chain.signer(), priced),
        (errand.signer, replace(priced, chain_id=1)),
    ):
        with pytest.raises(UsageError):
            await submit(chain, signer, transaction)


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from eth_account import Account
from capdex_publisher.ethereum.client import Chain
from capdex_publisher.keys.signer import LocalSigner
from capdex_publisher.tx.submit import submit

def die(sent):
    os.kill(os.getpid(), signal.SIGKILL)

async def main(url, state, key):
    signer = LocalSigner(Account.from_key(key).key)
    async with Chain.connect(url, 31337, state_dir=Path(state)) as chain:
        priced = await chain.price(signer.address, signer.address, "0x")
        await submit(chain, signer, priced, on_signed=die)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_killed_between_signing_and_sending_it_leaves_no_gap(
    local_chain, chain, errand, tmp_path, held
):
    account = Account.create()
    local_chain.call("anvil_setBalance", account.address, hex(10**18))
    state = str(tmp_path / "state")
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", KILLED, local_chain.url, state, "0x" + account.key.hex()],
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    errand.signer = LocalSigner(account.key)
    sent = await errand.send()  # the lock of the dead is free, and so is the nonce
    assert sent.nonce == 0


async def test_the_journal_is_whole_after_every_write(registry, errand, held, tmp_path):
    sent = await errand.send()
    pending = PendingTransaction(registry, "publish", "note", "1.0.0", "print")
    pending.save(sent)
    (path,) = (tmp_path / "state" / "sent").iterdir()
    assert await pending.load() == sent
    assert (await pending.load(fee_cap_wei=5)).transaction.fee_cap_wei == 5
    other = PendingTransaction(registry, "publish", "note", "1.0.0", "other")
    assert await other.load() is None
    whole = path.read_bytes()
    for size in range(0, len(whole), 7):  # what a torn write would leave
        path.write_bytes(whole[:size])
        assert await pending.load() is None
    document = json.loads(whole)
    changes: list[dict[str, object]] = [
        {"transaction": document["transaction"] | {"to": errand.signer.address}},
        {"transaction": document["transaction"] | {"chain_id": 1}},
        {"transaction": document["transaction"] | {"gas": "90000"}},
        {"transaction": document["transaction"] | {"gas": 0}},
        {"transaction": []},
        {"earlier": ["0x12"]},
        {"tx_hash": "0x" + "11" * 32},
        {"nonce": "x"},
    ]
    for change in changes:
        path.write_text(json.dumps(document | change))
        assert await pending.load() is None, change
    pending.remove()
    pending.remove()
    assert not path.exists()
    assert not [x for x in path.parent.iterdir() if not x.name.endswith(".json")]


# endpoints ----------------------------------------------------------------------------------------


async def test_an_endpoint_behind_a_balancer_may_know_an_older_nonce(
    registry, signer, local_chain, endpoint_before, tmp_path
):
    """The pending nonce of another node: refused as used, asked again."""
    errand = Errand(registry, signer)
    await errand.wait(await errand.send())
    stale = [3]

    def answer(method, params):
        if method == "eth_getTransactionCount" and stale[0]:
            stale[0] -= 1
            return {"result": "0x0"}
        return None

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as behind,
    ):
        second = Errand(behind, signer, "other")
        sent = await second.send()
    assert sent.nonce == 1


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("AlreadyKnown", True),
        ("Known transaction", True),
        ("nonce too low", True),  # a balancer hands it to two nodes, and answers for the second
        ("replacement transaction underpriced", True),
        ("insufficient funds for gas", True),
        ("max fee per gas less than block base fee", True),
        ("internal error", True),
        ("Nonce too low", False),
        ("Gas price below current base fee", False),
        ("OldNonce, Current nonce: 1, nonce of rejected tx: 0", False),
        ("FeeTooLow, MaxFeePerGas too low. MaxFeePerGas: 1, BaseFee: 2", False),
    ],
)
async def test_a_refusal_is_understood_by_its_words_and_by_what_the_endpoint_has(
    words, taken, registry, signer, local_chain, endpoint_before, tmp_path
):
    """In the words of Nethermind, Besu and geth; what the endpoint has taken is paid once."""
    sends = []

    def answer(method, params):
        if method != "eth_sendRawTransaction":
            return None
        sends.append(params)
        if taken:
            local_chain.call(method, *params)
        refused = taken or len(sends) == 1
        return {"error": {"code": -32010, "message": words}} if refused else None

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as other,
    ):
        errand = Errand(other, signer)
        receipt = await errand.wait(await errand.send())
    assert receipt.tx_hash == errand.signed[-1].tx_hash
    assert len(sends) == (1 if taken else 2)
    assert count(local_chain, signer.address) == 1


async def test_what_a_rollup_takes_for_the_chain_below_it_is_in_the_fee(
    registry, signer, local_chain, endpoint_before, tmp_path
):
    """OP Stack: the field `l1Fee` of a receipt is paid besides its gas."""

    def answer(method, params):
        if method != "eth_getTransactionReceipt":
            return None
        receipt = local_chain.raw(method, *params)
        if receipt["result"]:
            receipt["result"]["l1Fee"] = hex(7)
        return receipt

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as rollup,
    ):
        before = await rollup.chain.balance(signer.address)
        errand = Errand(rollup, signer)
        receipt = await errand.wait(await errand.send())
        paid = before - await rollup.chain.balance(signer.address)
    assert receipt.fee_wei == paid + 7


async def test_an_account_that_pays_the_gas_and_no_more_is_told_to_send_more(
    registry, signer, endpoint_before, tmp_path
):
    """A rollup refuses what cannot pay for the chain below it: no estimate has that."""
    words = "insufficient funds for gas * price + value: balance 100, tx cost 120, overshot 20"

    def answer(method, params):
        refused = {"error": {"code": -32000, "message": words}}
        return refused if method == "eth_sendRawTransaction" else None

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as rollup,
    ):
        with pytest.raises(Unavailable) as poor:
            await Errand(rollup, signer).send()
    assert poor.value.why == words
    assert poor.value.fix.startswith(f"send more to {signer.address}")


async def test_a_gas_estimate_that_was_too_low_is_told_as_that(
    registry, signer, endpoint_before, tmp_path
):
    def answer(method, params):
        return {"result": hex(60_000)} if method == "eth_estimateGas" else None

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as low,
    ):
        errand = Errand(low, signer)
        with pytest.raises(InvalidInput) as failed:
            await errand.wait(await errand.send())
    assert failed.value.code is Code.REVERTED
    assert "gas was estimated too low" in failed.value.why
    assert failed.value.fix == "run the same command again"
    assert failed.value.details is not None
    assert failed.value.details["fee_wei"] > 0


async def test_an_endpoint_without_a_pending_nonce_costs_nobody_a_transaction(
    registry, signer, held, endpoint_before, tmp_path
):
    """Some give the mined nonce whatever they are asked for: the second would replace the first."""

    def answer(method, params):
        if method == "eth_getTransactionCount":
            return held.raw(method, params[0], "latest")
        return None

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as poor,
    ):
        errands = [Errand(poor, signer, name) for name in ("note", "other", "last")]
        sent = [await errand.send() for errand in errands[:2]]
        sent[0] = await send_dearer(poor.chain, signer, sent[0])  # the second stays the last
        sent.append(await errands[2].send())
        assert [transaction.nonce for transaction in sent] == [0, 1, 2]
        held.call("evm_mine")
        for errand, transaction in zip(errands, sent, strict=True):
            assert (await errand.wait(transaction)).tx_hash == transaction.tx_hash
        held.call("evm_setAutomine", True)
        (memory,) = (tmp_path / "state" / "locks").glob(f"*{signer.address.lower()}.json")
        torn = ("", "{", '{"nonce": 7}', '{"nonce": 7, "tx_hash": "0x12"}', "[]")
        for letter, text in zip("abcde", torn, strict=True):
            memory.write_text(text)
            third = Errand(poor, signer, f"third-{letter}")
            assert (await third.wait(await third.send())).tx_hash


async def test_a_reply_lost_after_sending_is_told_with_its_hash(
    registry, signer, endpoint_before, local_chain, tmp_path
):
    def answer(method, params):
        if method == "eth_sendRawTransaction":
            local_chain.call(method, *params)
            return web.Response(status=502)
        return None

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as cut,
    ):
        errand = Errand(cut, signer)
        with pytest.raises(Unavailable) as lost:
            await errand.send()
    assert lost.value.details is not None
    assert lost.value.details["tx_hash"] == errand.signed[0].tx_hash
    assert "may or may not have been sent" in lost.value.why
    receipt = await confirm(registry.chain, errand.signed[0])
    assert receipt.tx_hash == errand.signed[0].tx_hash


async def test_a_replacement_whose_reply_was_lost_is_found_by_its_hash(
    registry, signer, held, endpoint_before, tmp_path
):
    sends = []

    def answer(method, params):
        if method != "eth_sendRawTransaction":
            return None
        sends.append(params)
        if len(sends) == 1:
            return None
        held.call(method, *params)
        return web.Response(status=502)

    async with (
        endpoint_before(answer) as url,
        Registry.connect(url, registry.address, 31337, state_dir=tmp_path / "state") as cut,
    ):
        errand = Errand(cut, signer)
        first = await errand.send()
        cut.chain.patience = AT_ONCE
        waiting = asyncio.create_task(errand.wait(first))
        await errand.resign(2, waiting)
        await until(lambda: held.call("eth_getTransactionByHash", errand.signed[-1].tx_hash))
        cut.chain.patience = LOST
        receipt = await until_mined(held, waiting)
    assert receipt.tx_hash == errand.signed[1].tx_hash
    assert len(await events_of(registry)) == 1
