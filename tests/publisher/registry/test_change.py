"""Everything that can be changed by one transaction, on a real Anvil."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from capdex.errors import Code, InvalidInput, Refused, Unavailable, UsageError
from capdex.ipld.cid import Cid
from capdex.registry.events import (
    DeprecationChanged,
    MaintainerChanged,
    Transferred,
    Voted,
    YankChanged,
)
from capdex_publisher.deploy import create2
from capdex_publisher.deploy.deploy import deploy
from capdex_publisher.ethereum.contract import Contract, Receipt
from capdex_publisher.ethereum.transaction import Leaving, Sent
from capdex_publisher.progress import Step
from capdex_publisher.registry.audit import name_on_chain
from capdex_publisher.registry.change import carry_out_change, plan_change
from capdex_publisher.registry.lifecycle import (
    change_release as flag,
)
from capdex_publisher.registry.lifecycle import (
    deprecate_name,
    undeprecate_name,
    vote,
)
from capdex_publisher.registry.ownership import (
    accept_transfer,
    add_maintainer,
    cancel_transfer,
    offer_transfer,
    remove_maintainer,
    renounce,
)
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.submit import submit

NOBODY = "0x" + "00" * 20


@pytest.fixture
async def published(registry, signer):
    """The registry with two releases of `note`."""
    cid = Cid.of(b"bytes")
    for semver in ("1.0.0", "1.1.0"):
        priced = await registry.price(
            signer.address, "publish", "note", semver, str(cid), cid.digest
        )
        await confirm(registry.chain, await submit(registry.chain, signer, priced))
    return registry


@pytest.fixture
def other(local_chain):
    """Another account with money."""
    return local_chain.signer()


@pytest.fixture
async def votes(published, signer, tmp_path):
    """The votes on its names."""
    made, _ = await deploy(
        published.chain, signer, tmp_path / "deployments", create2.votes(published.address)
    )
    return Contract(published.chain, made.address, "CapabilityVotes")


async def make(change, signer, **options):
    """Plan and carry out one change; `Changed.already` says whether anything was sent."""
    plan = await plan_change(change, sender=signer.address)
    return await carry_out_change(plan, signer=signer, **options)


async def refused(change, signer):
    """Why an account may not make a change; planning alone must say so."""
    with pytest.raises((Refused, InvalidInput)) as refusal:
        await plan_change(change, sender=signer.address)
    return refusal.value


# -------------------------------------------------------------------------------------- releases


async def test_a_release_is_yanked_and_taken_back(published, signer):
    steps: list[Step] = []
    done = await make(
        flag(published, "yank", "note", "1.1.0", "broken"), signer, on_step=steps.append
    )
    assert [type(step) for step in steps] == [Leaving, Sent, Receipt]
    event = steps[-1].events[-1]
    assert isinstance(event, YankChanged)
    assert (event.semver, event.yanked, event.reason) == ("1.1.0", True, "broken")
    assert not done.already
    assert (done.tx_hash, done.block_number) == (steps[-1].tx_hash, steps[-1].block_number)
    assert (await published.release("note", "1.1.0")).yanked
    assert not (await published.release("note", "1.0.0")).yanked
    assert not (await make(flag(published, "unyank", "note", "1.1.0"), signer)).already
    assert not (await published.release("note", "1.1.0")).yanked


async def test_a_release_is_deprecated_and_taken_back(published, signer):
    steps: list[Step] = []
    wanted = flag(published, "deprecate", "note", "1.0.0", "use 1.1.0")
    assert not (await make(wanted, signer, on_step=steps.append)).already
    event = steps[-1].events[-1]
    assert isinstance(event, DeprecationChanged)
    assert (event.semver, event.deprecated, event.message) == ("1.0.0", True, "use 1.1.0")
    assert (await published.release("note", "1.0.0")).deprecated
    assert not (await make(flag(published, "undeprecate", "note", "1.0.0"), signer)).already
    assert not (await published.release("note", "1.0.0")).deprecated


async def test_a_name_is_deprecated_and_taken_back(published, signer):
    assert not (
        await make(deprecate_name(published, "note", "no longer kept", "memo"), signer)
    ).already
    assert (await published.name_state("note")).deprecated
    assert not (await make(undeprecate_name(published, "note"), signer)).already
    assert not (await published.name_state("note")).deprecated


@pytest.mark.parametrize("verb", ["yank", "deprecate"])
async def test_words_are_short_and_text(published, signer, verb):
    await make(flag(published, verb, "note", "1.1.0", "é" * 250), signer)
    for words, code in (("é" * 251, Code.TOO_LARGE), ("\udcff", Code.INVALID_INPUT)):
        with pytest.raises(InvalidInput) as refusal:
            flag(published, verb, "note", "1.0.0", words)
        assert refusal.value.code is code


async def test_a_name_is_not_replaced_by_itself(published):
    with pytest.raises(UsageError):
        deprecate_name(published, "note", "gone", "note")
    with pytest.raises(InvalidInput):
        deprecate_name(published, "note", "gone", "Not a name")


# --------------------------------------------------------------------------------- who may do it


async def test_what_is_not_there_cannot_be_changed(published, signer):
    assert (await refused(flag(published, "yank", "note", "9.0.0"), signer)).code is Code.NOT_FOUND
    for wanted in (flag(published, "yank", "memo", "1.0.0"), renounce(published, "memo")):
        assert (await refused(wanted, signer)).code is Code.NOT_FOUND


async def test_a_stranger_is_told_whose_the_name_is_before_any_gas(published, signer, other):
    for wanted in (
        flag(published, "yank", "note", "1.0.0"),
        flag(published, "unyank", "note", "1.0.0"),
        flag(published, "deprecate", "note", "1.0.0", "x"),
        flag(published, "undeprecate", "note", "1.0.0"),
        deprecate_name(published, "note", "x"),
        undeprecate_name(published, "note"),
        offer_transfer(published, "note", other.address),
        cancel_transfer(published, "note"),
        add_maintainer(published, "note", other.address),
        remove_maintainer(published, "note", signer.address),
        renounce(published, "note"),
    ):
        refusal = await refused(wanted, other)
        assert refusal.code is Code.NOT_OWNER, wanted.verb
        assert signer.address in refusal.why, wanted.verb
    refusal = await refused(flag(published, "yank", "note", "1.0.0"), other)
    assert f"capdex maintainer add note {other.address}" in refusal.fix


async def test_a_maintainer_changes_releases_and_nothing_else(published, signer, other):
    steps: list[Step] = []
    wanted = add_maintainer(published, "note", other.address)
    await make(wanted, signer, on_step=steps.append)
    event = steps[-1].events[-1]
    assert isinstance(event, MaintainerChanged)
    assert (event.account, event.maintains) == (other.address, True)
    assert not (await make(flag(published, "yank", "note", "1.0.0"), other)).already
    assert not (await make(flag(published, "deprecate", "note", "1.0.0", "x"), other)).already
    for wanted in (
        deprecate_name(published, "note", "x"),
        offer_transfer(published, "note", other.address),
        add_maintainer(published, "note", NOBODY[:-1] + "1"),
        renounce(published, "note"),
    ):
        assert (await refused(wanted, other)).code is Code.NOT_OWNER, wanted.verb
    assert not (await make(remove_maintainer(published, "note", other.address), other)).already
    assert not await published.is_maintainer("note", other.address)
    assert (await refused(flag(published, "yank", "note", "1.1.0"), other)).code is Code.NOT_OWNER


async def test_an_owner_removes_a_maintainer(published, signer, other):
    await make(add_maintainer(published, "note", other.address), signer)
    assert not (await make(remove_maintainer(published, "note", other.address), signer)).already
    assert not await published.is_maintainer("note", other.address)


# ------------------------------------------------------------------------------------- transfers


async def test_a_name_changes_hands_in_two_steps_and_loses_its_maintainers(
    published, signer, other, local_chain
):
    third = local_chain.signer()
    await make(add_maintainer(published, "note", third.address), signer)
    offer = offer_transfer(published, "note", other.address)
    assert offer.typed_back == "note"
    await make(offer, signer)
    record = await published.name_state("note")
    assert (record.owner, record.pending_owner) == (signer.address, other.address)
    refusal = await refused(accept_transfer(published, "note"), third)
    assert refusal.code is Code.NOT_OWNER
    assert other.address in refusal.why
    steps: list[Step] = []
    await make(accept_transfer(published, "note"), other, on_step=steps.append)
    event = steps[-1].events[-1]
    assert isinstance(event, Transferred)
    assert (event.by, event.former_owner) == (other.address, signer.address)
    record = await published.name_state("note")
    assert (record.owner, record.pending_owner, record.epoch) == (other.address, None, 1)
    assert not await published.is_maintainer("note", third.address)
    assert (await refused(flag(published, "yank", "note", "1.0.0"), signer)).code is Code.NOT_OWNER


async def test_an_offer_is_cancelled_or_replaced(published, signer, other, local_chain):
    third = local_chain.signer()
    await make(offer_transfer(published, "note", other.address), signer)
    assert not (await make(offer_transfer(published, "note", third.address), signer)).already
    assert (await refused(accept_transfer(published, "note"), other)).code is Code.NOT_OWNER
    assert not (await make(cancel_transfer(published, "note"), signer)).already
    assert (await refused(accept_transfer(published, "note"), third)).code is Code.NOT_OWNER


async def test_nothing_is_given_to_nobody_or_to_its_owner(published, signer):
    for wanted in (offer_transfer, add_maintainer):
        with pytest.raises(UsageError):
            wanted(published, "note", NOBODY)
        refusal = await refused(wanted(published, "note", signer.address), signer)
        assert refusal.code is Code.INVALID_INPUT


async def test_a_name_given_up_stays_as_it_is_for_ever(published, signer, other):
    wanted = renounce(published, "note")
    assert wanted.typed_back == "note"
    await make(add_maintainer(published, "note", other.address), signer)
    await make(wanted, signer)
    assert (await published.name_state("note")).renounced
    for account in (signer, other):
        for change in (
            flag(published, "yank", "note", "1.0.0"),
            deprecate_name(published, "note", "x"),
        ):
            refusal = await refused(change, account)
            assert refusal.code is Code.NOT_OWNER
            assert "given up" in refusal.message


# ----------------------------------------------------------------------------------------- votes


async def test_a_vote_is_cast_changed_and_taken_back(published, votes, signer, other):
    steps: list[Step] = []
    await make(vote(votes, published, "note", "up"), signer, on_step=steps.append)
    event = steps[-1].events[-1]
    assert isinstance(event, Voted)
    assert (event.name, event.vote, event.weight) == ("note", 1, 1)
    await make(vote(votes, published, "note", "down"), other)
    assert await votes.read("tally", "note") == (1, 1)
    assert (await make(vote(votes, published, "note", "up"), signer)).already
    await make(vote(votes, published, "note", "down"), signer)
    assert await votes.read("tally", "note") == (0, 2)
    await make(vote(votes, published, "note", "clear"), signer)
    assert await votes.read("tally", "note") == (0, 1)
    assert (await make(vote(votes, published, "note", "clear"), signer)).already
    assert await votes.read("weightOf", signer.address) == 1


async def test_votes_are_on_names_of_this_registry(published, votes, signer, chain):
    missing = await refused(vote(votes, published, "memo", "up"), signer)
    assert missing.code is Code.NOT_FOUND
    elsewhere = type(published)(chain, signer.address)
    assert (await refused(vote(votes, elsewhere, "note", "up"), signer)).code is Code.CONFIG


async def test_a_name_is_read_and_no_vote_cast_where_no_votes_contract_stands(published, signer):
    nowhere = signer.address
    assert (await name_on_chain(published, "note", votes=nowhere)).votes is None
    contract = Contract(published.chain, nowhere, "CapabilityVotes")
    refusal = await refused(vote(contract, published, "note", "up"), signer)
    assert (refusal.code, nowhere in refusal.message) == (Code.NO_CONTRACT, True)


# ------------------------------------------------------------------------ repeated, killed, raced


async def test_what_is_so_already_costs_nothing(published, votes, signer, other):
    for wanted in (
        flag(published, "unyank", "note", "1.0.0"),
        flag(published, "undeprecate", "note", "1.0.0"),
        undeprecate_name(published, "note"),
        cancel_transfer(published, "note"),
        remove_maintainer(published, "note", other.address),
        vote(votes, published, "note", "clear"),
    ):
        plan = await plan_change(wanted, sender=signer.address)
        assert (plan.already, plan.transaction, plan.resumes) == (True, None, None), wanted.verb
    for wanted in (
        flag(published, "yank", "note", "1.0.0"),
        flag(published, "deprecate", "note", "1.0.0", "x"),
        deprecate_name(published, "note", "x"),
        add_maintainer(published, "note", other.address),
        offer_transfer(published, "note", other.address),
    ):
        assert not (await make(wanted, signer)).already, wanted.verb
        assert (await make(wanted, signer)).already, wanted.verb
    assert not (await make(accept_transfer(published, "note"), other)).already
    assert (await make(accept_transfer(published, "note"), other)).already
    assert not (await make(renounce(published, "note"), other)).already
    assert (await make(renounce(published, "note"), other)).already


async def test_a_change_that_waits_for_its_block_is_waited_for_not_sent_again(
    published, signer, other, local_chain
):
    local_chain.call("evm_setAutomine", False)
    wanted = offer_transfer(published, "note", other.address)
    plan = await plan_change(wanted, sender=signer.address)
    with pytest.raises(KeyboardInterrupt):
        await carry_out_change(plan, signer=signer, on_step=_interrupt)
    resumed = await plan_change(wanted, sender=signer.address)
    assert resumed.resumes is not None
    elsewhere = offer_transfer(published, "note", NOBODY[:-1] + "1")
    assert (await plan_change(elsewhere, sender=signer.address)).resumes is None
    local_chain.call("evm_mine")
    done = await carry_out_change(resumed, signer=signer)
    assert done.tx_hash == resumed.resumes.tx_hash


async def test_a_change_that_was_taken_back_since_it_was_killed_is_sent_anew(
    published, signer, local_chain, tmp_path
):
    local_chain.call("evm_setAutomine", False)
    wanted = flag(published, "yank", "note", "1.0.0")
    plan = await plan_change(wanted, sender=signer.address)
    with pytest.raises(KeyboardInterrupt):
        await carry_out_change(plan, signer=signer, on_step=_interrupt)
    local_chain.call("evm_mine")
    local_chain.call("evm_setAutomine", True)
    async with Registry.connect(
        local_chain.url, published.address, 31337, state_dir=tmp_path / "elsewhere"
    ) as elsewhere:
        await make(flag(elsewhere, "unyank", "note", "1.0.0"), signer)
    assert not (await make(wanted, signer)).already
    assert (await published.release("note", "1.0.0")).yanked


async def test_a_plan_that_was_overtaken_before_it_was_sent_sends_nothing(published, signer):
    wanted = flag(published, "yank", "note", "1.0.0")
    plan = await plan_change(wanted, sender=signer.address)
    await make(wanted, signer)
    before = await published.chain.nonce(signer.address, "latest")
    assert (await carry_out_change(plan, signer=signer)).already
    assert await published.chain.nonce(signer.address, "latest") == before


async def test_a_name_lost_between_plan_and_send_is_refused_with_its_owner(
    published, signer, other
):
    await make(offer_transfer(published, "note", other.address), signer)
    plan = await plan_change(flag(published, "yank", "note", "1.0.0"), sender=signer.address)
    await make(accept_transfer(published, "note"), other)
    with pytest.raises(Refused) as refusal:
        await carry_out_change(plan, signer=signer)
    assert refusal.value.code is Code.NOT_OWNER
    assert other.address in refusal.value.why


async def test_two_at_once_end_in_one(published, signer, local_chain):
    local_chain.call("evm_setAutomine", False)
    wanted = flag(published, "yank", "note", "1.0.0")
    plans = [await plan_change(wanted, sender=signer.address) for _ in range(2)]
    transaction = plans[0].transaction
    assert transaction is not None
    first = await submit(published.chain, signer, transaction)

    def mine(_step):
        local_chain.call("evm_mine")

    second = await carry_out_change(plans[1], signer=signer, on_step=mine)
    assert second.already
    await confirm(published.chain, first)


async def test_two_processes_at_once_pay_once(published, signer, local_chain):
    local_chain.call("evm_setAutomine", False)
    wanted = flag(published, "yank", "note", "1.0.0")
    plans = [await plan_change(wanted, sender=signer.address) for _ in range(2)]
    sent = []

    def mine(step):
        if isinstance(step, Sent):
            sent.append(step)
        if len(sent) == 2:
            local_chain.call("evm_mine")

    before = await published.chain.nonce(signer.address, "latest")
    ends = await asyncio.gather(
        *(carry_out_change(plan, signer=signer, on_step=mine) for plan in plans)
    )
    assert ends[0].tx_hash == ends[1].tx_hash
    assert await published.chain.nonce(signer.address, "latest") == before + 1


async def test_an_offer_withdrawn_on_the_way_is_refused_in_the_plans_words(
    published, signer, other, local_chain
):
    await make(offer_transfer(published, "note", other.address), signer)
    plan = await plan_change(accept_transfer(published, "note"), sender=other.address)
    cancelling = await plan_change(cancel_transfer(published, "note"), sender=signer.address)
    local_chain.call("evm_setAutomine", False)
    # the withdrawal pays a higher tip, so that it comes first in the block
    assert cancelling.transaction is not None
    tip = cancelling.transaction.max_priority_fee_per_gas + 10**9
    first = replace(cancelling.transaction, max_priority_fee_per_gas=tip, max_fee_per_gas=tip * 10)
    await submit(published.chain, signer, first)

    def mine(_step):
        local_chain.call("evm_mine")

    with pytest.raises(Refused) as refusal:
        await carry_out_change(plan, signer=other, on_step=mine)
    assert refusal.value.code is Code.NOT_OWNER
    assert refusal.value.details is not None
    assert refusal.value.details["error"] == "NoOffer"
    assert refusal.value.details["tx_hash"].startswith("0x")


async def test_another_accounts_key_does_not_carry_out_a_plan(published, signer, other):
    plan = await plan_change(flag(published, "yank", "note", "1.0.0"), sender=signer.address)
    with pytest.raises(UsageError, match="the key is that of"):
        await carry_out_change(plan, signer=other)


async def test_the_node_is_waited_for_until_it_knows_the_block(published, signer):
    asked = []

    async def indexed(block):
        asked.append(block)
        if len(asked) == 1:
            raise Unavailable("not yet up", Code.NODE_UNAVAILABLE)
        return len(asked) > 2

    done = await make(flag(published, "yank", "note", "1.0.0"), signer, indexed=indexed)
    assert asked == [done.block_number] * 3
    assert done.served_after_s is not None


def _interrupt(step):
    if isinstance(step, Sent):
        raise KeyboardInterrupt
