"""Many packages by one command: one transaction where it pays, and nobody stops the others."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from capdex.errors import Code, Refused, Unavailable
from capdex.ipld.cid import Cid
from capdex.net.ipfs.block_store import BlockDirectory
from capdex.registry.events import Published
from capdex_publisher.authoring.scaffold import PackageKind, scaffold
from capdex_publisher.authoring.sign import sign
from capdex_publisher.authoring.validate import PackageFile
from capdex_publisher.ethereum.contract import Receipt, all_events
from capdex_publisher.ethereum.transaction import Reverted, Sent
from capdex_publisher.progress import Step, Uploaded
from capdex_publisher.publish.plan import MAX_BATCH, PublishPlan, divide, gas_bound
from capdex_publisher.publish.publish import publish as publish_files
from capdex_publisher.publish.upload import Uploader
from capdex_publisher.tx.submit import submit


class Killed(BaseException):
    """What SIGKILL looks like from inside: nothing after it runs."""


async def package(signer, name="note", version="1.0.0", description="Notes"):
    text = scaffold(name, version=version, description=description, kind=PackageKind.PROMPT)
    return await sign(text.encode(), signer, chain_id=31337)


async def packages(signer, names, version="1.0.0"):
    return [await package(signer, name=name, version=version) for name in names]


async def publish(files, registry, signer, storage, **options):
    """The results of packages, with an error where there is one."""
    named = [PackageFile(f"{number}.acp.yaml", data) for number, data in enumerate(files)]
    options = {"uploader": Uploader(storage), "chain_id": 31337, **options}
    return await publish_files(named, registry=registry, signer=signer, **options)


async def plan(files, registry, signer, storage, **options):
    steps: list[Step] = []
    await publish(files, registry, signer, storage, dry_run=True, on_step=steps.append, **options)
    return next(step for step in steps if isinstance(step, PublishPlan))


def errors(results):
    """The code of each error, None for what is published."""
    return [one.error and one.error.code for one in results]


async def published(registry):
    """How often each release was published."""
    found = await all_events(registry, [])
    return Counter(x.announcement.cap_uri for x in found if isinstance(x, Published))


NAMES = [f"note-{letter}" for letter in "abcdefghjkmnopqrstuv"]  # none looks like another


async def test_twenty_further_releases_go_by_one_transaction_of_little_gas(
    registry, signer, blocks
):
    await publish(await packages(signer, ["note"]), registry, signer, blocks)
    files = [await package(signer, version=f"1.{minor}.0") for minor in range(1, 21)]
    steps: list[Step] = []
    outcomes = await publish(files, registry, signer, blocks, on_step=steps.append)
    kinds = Counter(type(step) for step in steps)
    assert (kinds[Uploaded], kinds[Sent], kinds[Receipt]) == (20, 1, 1)
    (receipt,) = {outcome.receipt for outcome in outcomes}
    assert len(receipt.events) == 20
    assert receipt.gas_used / 20 <= 65_000
    assert set((await published(registry)).values()) == {1}


async def test_two_releases_cost_less_together_than_alone(registry, signer, blocks):
    alone = await publish(await packages(signer, ["alpha"]), registry, signer, blocks)
    pair = await publish(await packages(signer, ["beta", "gamma"]), registry, signer, blocks)
    assert pair[0].receipt.gas_used < 2 * alone[0].receipt.gas_used


async def test_versions_of_a_new_name_are_published_together(registry, signer, blocks):
    files = [await package(signer, version=version) for version in ("1.0.0", "1.1.0", "0.9.0")]
    outcomes = await publish(files, registry, signer, blocks)
    assert [x.semver for x in await registry.releases("note")] == ["1.0.0", "1.1.0", "0.9.0"]
    assert len({outcome.receipt.tx_hash for outcome in outcomes}) == 1


async def test_what_is_published_is_unchanged_and_the_rest_goes_on(registry, signer, blocks):
    files = await packages(signer, NAMES[:4])
    await publish(files[:2], registry, signer, blocks)
    outcomes = await publish(files, registry, signer, blocks)
    assert [outcome.already for outcome in outcomes] == [True, True, False, False]
    assert set((await published(registry)).values()) == {1}
    again = await publish(files, registry, signer, blocks)
    assert [x.receipt.tx_hash for x in again] == [x.receipt.tx_hash for x in outcomes]


async def test_what_cannot_be_published_together_is_refused_but_for_the_first(
    registry, signer, blocks
):
    files = [
        await package(signer),
        await package(signer, description="Others"),
        await package(signer, name="n0te"),
        await package(signer, name="other"),
    ]
    found = await publish(files, registry, signer, blocks, dry_run=True)
    assert errors(found) == [None, Code.INVALID_INPUT, Code.NAME_TAKEN, None]


async def test_a_package_that_is_not_uploaded_does_not_stop_the_others(registry, signer, tmp_path):
    class Full(BlockDirectory):
        async def put(self, data):
            if b"note-b" in data:
                raise Unavailable("no space is left", Code.IPFS_UNAVAILABLE)
            return await super().put(data)

    files = await packages(signer, NAMES[:3])
    ends = await publish(files, registry, signer, Full(tmp_path / "blocks"))
    assert errors(ends) == [None, Code.IPFS_UNAVAILABLE, None]
    assert len(await published(registry)) == 2


async def test_a_name_that_was_lost_meanwhile_does_not_stop_the_others(
    registry, signer, blocks, local_chain
):
    other = local_chain.signer()

    async def confirm(plan):
        await publish(await packages(other, ["note-b"]), registry, other, blocks)
        return True

    files = await packages(signer, NAMES[:3])
    ends = await publish(files, registry, signer, blocks, confirm=confirm)
    assert errors(ends) == [None, Code.NAME_TAKEN, None]
    assert {len(end.receipt.events) for end in ends if end.receipt} == {2}


async def test_a_batch_that_is_reverted_says_for_each_release_what_to_do(
    registry, signer, blocks, local_chain
):
    other = local_chain.signer()
    files = await packages(signer, NAMES[:3])
    theirs = Cid.of(b"theirs")

    async def overtake():
        priced = await registry.price(
            other.address, "publish", "note-b", "1.0.0", str(theirs), theirs.digest
        )
        fees = {"max_fee_per_gas": 10**11, "max_priority_fee_per_gas": 10**11}
        await submit(registry.chain, other, replace(priced, **fees))

    local_chain.call("evm_setAutomine", False)
    await overtake()

    steps: list[object] = []

    def mine(step):
        steps.append(step)
        if isinstance(step, Sent):
            local_chain.call("evm_mine")
            local_chain.call("evm_setAutomine", True)

    ends = await publish(files, registry, signer, blocks, on_step=mine)
    assert errors(ends) == [Code.TIMEOUT, Code.NAME_TAKEN, Code.TIMEOUT]
    assert "run the same command again" in ends[0].error.fix
    (paid,) = [step for step in steps if isinstance(step, Reverted)]
    assert paid.fee_wei > 0
    for end in ends:
        assert end.error.details["tx_hash"] == paid.tx_hash
        assert end.error.details["fee_wei"] == paid.fee_wei
    again = await publish([files[0], files[2]], registry, signer, blocks)
    assert [outcome.already for outcome in again] == [False, False]
    assert set((await published(registry)).values()) == {1}


async def test_the_same_batch_from_two_machines_is_published_once(
    registry, signer, blocks, local_chain
):
    def kill(step):
        if isinstance(step, Sent):
            raise Killed

    def mine(step):
        if isinstance(step, Sent):
            local_chain.call("evm_mine")

    files = await packages(signer, NAMES[:3])
    local_chain.call("evm_setAutomine", False)
    with pytest.raises(Killed):
        await publish(files, registry, signer, blocks, on_step=kill)
    for kept in (registry.chain.state_dir / "sent").iterdir():
        kept.unlink()  # the second machine knows nothing of the first
    ends = await publish(files, registry, signer, blocks, on_step=mine)
    assert [end.already for end in ends] == [True] * 3
    assert set((await published(registry)).values()) == {1}


@pytest.mark.parametrize("moment", [Uploaded, Sent, Receipt])
async def test_a_killed_batch_is_finished_by_running_it_again(registry, signer, blocks, moment):
    def kill(step):
        if isinstance(step, moment):
            raise Killed

    files = await packages(signer, NAMES[:4])
    with pytest.raises(Killed):
        await publish(files, registry, signer, blocks, on_step=kill)
    ends = await publish(files, registry, signer, blocks)
    assert errors(ends) == [None] * len(files)
    assert set((await published(registry)).values()) == {1}
    assert await registry.chain.nonce(signer.address, "pending") == 1


async def test_a_batch_in_the_mempool_is_waited_for_by_whoever_names_one_of_its_files(
    registry, signer, blocks, local_chain
):
    def kill(step):
        if isinstance(step, Sent):
            raise Killed

    files = await packages(signer, NAMES[:3])
    local_chain.call("evm_setAutomine", False)
    with pytest.raises(Killed):
        await publish(files, registry, signer, blocks, on_step=kill)
    named = [files[1], await package(signer, name="other")]
    planned = await plan(named, registry, signer, blocks)
    assert [one.resumes is not None for one in planned.candidates] == [True, False]
    local_chain.call("evm_setAutomine", True)
    local_chain.call("evm_mine")
    ends = await publish(named, registry, signer, blocks)
    assert [len(end.receipt.events) for end in ends if not end.already] == [1]
    assert len(await published(registry)) == 4
    assert await registry.chain.nonce(signer.address, "pending") == 2


async def test_a_batch_that_was_dropped_is_sent_again_by_the_next_run(
    registry, signer, blocks, local_chain
):
    sent = []

    def kill(step):
        if isinstance(step, Sent):
            sent.append(step)
            raise Killed

    files = await packages(signer, NAMES[:3])
    local_chain.call("evm_setAutomine", False)
    with pytest.raises(Killed):
        await publish(files, registry, signer, blocks, on_step=kill)
    local_chain.call("anvil_dropTransaction", sent[0].tx_hash)
    local_chain.call("evm_setAutomine", True)
    ends = await publish(files, registry, signer, blocks)
    assert [end.already for end in ends] == [False] * 3
    assert set((await published(registry)).values()) == {1}


async def test_a_batch_whose_block_was_reorged_away_is_published_by_the_next_run(
    registry, signer, blocks, local_chain
):
    files = await packages(signer, NAMES[:3])
    local_chain.call("evm_mine")
    await publish(files, registry, signer, blocks)
    local_chain.call("anvil_reorg", 1, [])
    assert await published(registry) == {}
    ends = await publish(files, registry, signer, blocks)
    assert errors(ends) == [None] * len(files)
    assert set((await published(registry)).values()) == {1}


async def test_batches_keep_below_a_share_of_a_block_and_a_number(registry, signer, blocks):
    files = await packages(signer, NAMES)
    found = (await plan(files, registry, signer, blocks)).candidates
    assert len(found) == 20
    each = gas_bound(found[:1])
    assert [len(x) for x in divide(found, 30_000_000)] == [20]
    assert [len(x) for x in divide(found, 4 * each * 8)] == [8, 8, 4]
    assert [len(x) for x in divide(found, 1)] == [1] * 20  # one at least, whatever the block
    many = list(found) * 11
    assert max(len(x) for x in divide(many, 10**12)) == MAX_BATCH
    assert [one for x in divide(many, 10**12) for one in x] == many
    assert divide([], 30_000_000) == ()


async def test_a_batch_takes_no_more_than_a_transaction_may_however_large_blocks_are(
    registry, signer, blocks
):
    (one,) = (await plan([await package(signer, "n" * 64)], registry, signer, blocks)).candidates
    batches = divide([one] * 200, 10**12)
    assert sum(map(len, batches)) == 200
    assert max(map(gas_bound, batches)) <= 2**24  # EIP-7825


async def test_an_account_that_can_pay_one_but_not_all_is_refused(
    registry, signer, blocks, local_chain
):
    files = await packages(signer, NAMES[:4])
    (transaction,) = (await plan(files[:1], registry, signer, blocks)).transactions
    one = transaction.max_fee_wei
    local_chain.call("anvil_setBalance", signer.address, hex(one * 3 // 2))
    with pytest.raises(Refused) as refusal:
        await plan(files, registry, signer, blocks)
    assert refusal.value.code is Code.EMPTY_ACCOUNT
    with pytest.raises(Refused) as capped:
        await plan(files, registry, signer, blocks, fee_cap_wei=one * 3 // 4)
    assert capped.value.code is Code.FEE_OVER_CAP


async def test_every_error_is_one_of_ours(registry, signer, blocks):
    found = await publish([b"", b"\xff", b"metadata: {}"], registry, signer, blocks)
    assert errors(found) == [Code.INVALID_INPUT] * 3
