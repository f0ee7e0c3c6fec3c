"""Yanking a release and taking it back, on a real Anvil."""

from __future__ import annotations

import pytest

from capdex.cid import Cid
from capdex.errors import Code, InvalidInput, Refused
from capdex.events import YankChanged
from publisher.registry import Receipt
from publisher.transaction import Sent
from publisher.yank import carry_out_yank, plan_unyank, plan_yank


@pytest.fixture
async def published(registry, signer):
    cid = Cid.of(b"bytes")
    for semver in ("1.0.0", "1.1.0"):
        sent = await registry.publish(signer, "note", semver, str(cid), cid.digest)
        await registry.wait(sent.tx_hash)
    return registry


async def yank(registry, signer, semver="1.1.0", reason="broken", **options):
    plan = await plan_yank("note", semver, reason, registry=registry, sender=signer.address)
    return await carry_out_yank(plan, registry=registry, signer=signer, **options)


async def test_a_release_is_yanked_and_taken_back(published, signer):
    steps = []
    outcome = await yank(published, signer, on_step=steps.append)
    assert [type(step) for step in steps] == [Sent, Receipt]
    event = steps[-1].event
    assert isinstance(event, YankChanged)
    assert (event.semver, event.yanked, event.reason) == ("1.1.0", True, "broken")
    assert outcome.cap_uri == "did:nuwa:cap:note@1.1.0"
    assert not outcome.already
    assert (await published.release("note", "1.1.0")).yanked
    assert not (await published.release("note", "1.0.0")).yanked
    plan = await plan_unyank("note", "1.1.0", registry=published, sender=signer.address)
    assert not (await carry_out_yank(plan, registry=published, signer=signer)).already
    assert not (await published.release("note", "1.1.0")).yanked


async def test_yanking_again_finds_it_done(published, signer):
    await yank(published, signer)
    again = await yank(published, signer)
    assert again.already
    plan = await plan_unyank("note", "1.0.0", registry=published, sender=signer.address)
    assert plan.already


async def test_only_the_owner_yanks(published, local_chain, signer):
    with pytest.raises(Refused) as refusal:
        await yank(published, local_chain.signer())
    assert refusal.value.code is Code.NOT_OWNER
    assert signer.address in refusal.value.why


async def test_what_is_not_there_cannot_be_yanked(published, signer):
    with pytest.raises(InvalidInput) as refusal:
        await yank(published, signer, semver="9.0.0")
    assert refusal.value.code is Code.NOT_FOUND


async def test_a_reason_is_short(published, signer):
    await yank(published, signer, reason="é" * 250)
    with pytest.raises(InvalidInput) as refusal:
        await yank(published, signer, semver="1.0.0", reason="é" * 251)
    assert refusal.value.code is Code.TOO_LARGE


async def test_a_yank_that_waits_for_its_block_is_waited_for(published, signer, local_chain):
    local_chain.call("evm_setAutomine", False)
    plan = await plan_yank("note", "1.0.0", "", registry=published, sender=signer.address)
    with pytest.raises(KeyboardInterrupt):
        await carry_out_yank(plan, registry=published, signer=signer, on_step=_interrupt)
    resumed = await plan_yank("note", "1.0.0", "", registry=published, sender=signer.address)
    assert resumed.resumes is not None
    local_chain.call("evm_mine")
    outcome = await carry_out_yank(resumed, registry=published, signer=signer)
    assert outcome.tx_hash == resumed.resumes.tx_hash


async def test_two_yanks_at_once_end_in_one(published, signer, local_chain):
    local_chain.call("evm_setAutomine", False)
    plans = [
        await plan_yank("note", "1.0.0", "", registry=published, sender=signer.address)
        for _ in range(2)
    ]
    first = await published.send(signer, plans[0].transaction)

    def mine(_step):
        local_chain.call("evm_mine")

    second = await carry_out_yank(plans[1], registry=published, signer=signer, on_step=mine)
    assert second.already
    await published.wait(first.tx_hash)
    assert await published.release_count("note") == 2


def _interrupt(_step):
    raise KeyboardInterrupt
