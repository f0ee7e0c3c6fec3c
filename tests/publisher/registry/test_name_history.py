"""Names read from the chain's own logs, on a real Anvil."""

from __future__ import annotations

import pytest

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.ipld.cid import Cid
from capdex.net.rpc.errors import RpcFault, rpc_error
from capdex.registry.events import Claimed, Published, YankChanged
from capdex_publisher.registry.change import carry_out_change, plan_change
from capdex_publisher.registry.lifecycle import change_release, deprecate_name
from capdex_publisher.registry.name_history import fold, name_state, name_view, names_held
from capdex_publisher.registry.ownership import (
    accept_transfer,
    add_maintainer,
    offer_transfer,
    renounce,
)
from capdex_publisher.registry.registry import Registry
from capdex_publisher.tx.confirm import confirm
from capdex_publisher.tx.submit import submit

SECRET = b"\0" * 32


@pytest.fixture
def other(local_chain):
    return local_chain.signer()


async def publish(registry, signer, name, semver="1.0.0"):
    cid = Cid.of(b"bytes")
    await transact(registry, signer, "publish", name, semver, str(cid), cid.digest)


async def claim(registry, signer, name):
    return await transact(registry, signer, "claim", name, SECRET)


async def transact(registry, signer, function, *arguments):
    priced = await registry.price(signer.address, function, *arguments)
    return registry.receipt(
        await confirm(registry.chain, await submit(registry.chain, signer, priced))
    )


async def make(change, signer):
    plan = await plan_change(change, sender=signer.address)
    await carry_out_change(plan, signer=signer)


async def test_the_history_of_a_name_is_its_own_events_in_order(registry, signer):
    await publish(registry, signer, "note")
    await publish(registry, signer, "memo")
    await publish(registry, signer, "note", "1.1.0")
    await make(change_release(registry, "yank", "note", "1.0.0", "broken"), signer)
    events = await registry.history("note")
    assert [type(event) for event in events] == [Published, Published, YankChanged]
    assert [event.sequence for event in events] == [1, 3, 4]
    block = events[0].position.block_number
    assert len(await registry.history("note", upto=block)) == 1
    assert await registry.history("nobodys") == ()


async def test_a_name_is_told_by_its_logs_as_the_contract_keeps_it(registry, signer, other):
    await claim(registry, signer, "memo")
    await publish(registry, signer, "note")
    await publish(registry, signer, "note", "2.0.0")
    await make(change_release(registry, "yank", "note", "1.0.0", "broken"), signer)
    await make(deprecate_name(registry, "note", "gone", "memo"), signer)
    await make(add_maintainer(registry, "note", other.address), signer)
    await make(offer_transfer(registry, "note", other.address), signer)
    state, block = await name_state(registry, "note")
    assert block == await registry.chain.head()
    assert (state.owner, state.pending_owner) == (signer.address, other.address)
    assert state.maintainers == {other.address}
    assert (state.deprecated, state.message, state.replaced_by) == (True, "gone", "memo")
    assert [(x.semver, x.yanked, x.yank_reason) for x in state.releases] == [
        ("1.0.0", True, "broken"),
        ("2.0.0", False, ""),
    ]
    assert [x.sequence for x in state.releases] == [2, 3]
    claimed, _ = await name_state(registry, "memo")
    assert claimed.releases == []
    assert (await name_state(registry, "nobodys"))[0] is None


async def test_an_account_finds_what_it_owns_maintains_and_is_offered(registry, signer, other):
    for name in ("note", "memo", "given", "kept"):
        await publish(registry, signer, name)
    await claim(registry, signer, "bare")
    await publish(registry, other, "theirs")
    await make(offer_transfer(registry, "given", other.address), signer)
    await make(accept_transfer(registry, "given"), other)
    await make(add_maintainer(registry, "memo", other.address), signer)
    await make(offer_transfer(registry, "kept", other.address), signer)
    await make(renounce(registry, "note"), signer)
    mine, block = await names_held(registry, signer.address)
    assert [(x.name, x.role) for x in mine] == [
        ("bare", "owner"),
        ("kept", "owner"),
        ("memo", "owner"),
    ]
    assert block == await registry.chain.head()
    theirs, _ = await names_held(registry, other.address)
    assert [(x.name, x.role) for x in theirs] == [
        ("given", "owner"),
        ("kept", "offered"),
        ("memo", "maintainer"),
        ("theirs", "owner"),
    ]
    assert (await names_held(registry, registry.address))[0] == []


async def test_an_endpoint_that_leaves_logs_out_is_noticed(registry, signer):
    await publish(registry, signer, "note")
    await publish(registry, signer, "note", "2.0.0")
    deaf = Registry(registry.chain, registry.address, start_block=await registry.chain.head())
    with pytest.raises(Unavailable) as gaps:
        await name_state(deaf, "note")
    assert gaps.value.code is Code.RPC_UNAVAILABLE
    assert "whole history" in gaps.value.message
    later = Registry(registry.chain, registry.address, start_block=await registry.chain.head() + 1)
    with pytest.raises(Unavailable):
        await name_state(later, "note")


async def test_events_that_cannot_follow_one_another_are_no_history(registry, signer):
    await publish(registry, signer, "note")
    await make(change_release(registry, "yank", "note", "1.0.0"), signer)
    first, second = await registry.history("note")
    with pytest.raises(InvalidInput):
        fold([second, first])
    with pytest.raises(InvalidInput):
        fold([first, second, second])
    assert fold([]) is None


async def test_a_claim_without_a_release_is_an_event(registry, signer):
    receipt = await claim(registry, signer, "bare")
    assert isinstance(receipt.events[-1], Claimed)
    state, count = await registry.name_record("bare")
    assert (state.owner, count) == (signer.address, 0)
    assert not state.renounced
    assert await registry.name_record("nobodys") == (None, 0)


async def test_reads_about_names_commitments_and_signatures(registry, signer, other):
    assert await registry.commitment_ages() == (0, 0)
    assert await registry.committed_at(b"\1" * 32) == 0
    assert await registry.read("nonces", signer.address) == 0
    assert not await registry.is_maintainer("note", other.address)


class Narrow(Registry):
    """A registry behind an endpoint that gives logs of so few blocks at once."""

    blocks = 1

    async def logs(self, topics, first, last):
        if last - first >= self.blocks:
            raise rpc_error("here", RpcFault.TOO_LARGE_RANGE, "range too wide")
        return await super().logs(topics, first, last)


async def test_a_history_is_read_in_pieces_or_is_out_of_reach(registry, signer, local_chain):
    await publish(registry, signer, "note")
    local_chain.call("anvil_mine", hex(300))
    await publish(registry, signer, "note", "2.0.0")
    narrow = Narrow(registry.chain, registry.address, start_block=registry.start_block)
    with pytest.raises(Unavailable) as far:
        await narrow.history("note")
    assert "out of reach" in far.value.message
    assert (await narrow.find_publication("note", "2.0.0")).announcement.semver == "2.0.0"
    assert await narrow.find_publication("note", "1.0.0") is None
    state, _ = await name_view(narrow, "note")
    assert [x.semver for x in state.releases] == ["1.0.0", "2.0.0"]
    narrow.blocks = 7
    assert await narrow.history("note") == await registry.history("note")
    narrow.blocks = 0
    with pytest.raises(Unavailable, match="did not answer") as wide:
        await narrow.history("note")
    assert "too wide" in wide.value.why
