"""The ledger keeps what the contract keeps, and takes no event that the contract would refuse.

That it equals the contract's views after thousands of real operations is tests/e2e/test_rebuild.py.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capdex.encoding.abi import checksum_address
from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.registry.events import (
    Announcement,
    Claimed,
    Committed,
    DeprecationChanged,
    Event,
    MaintainerChanged,
    NameDeprecationChanged,
    Published,
    Renounced,
    Sponsored,
    TransferCancelled,
    TransferOffered,
    Transferred,
    Voted,
    YankChanged,
)
from capdex.registry.logs import LogPosition
from capdex.registry.state import MAX_REASON_BYTES, ZERO_ADDRESS, Ledger, NameState
from capdex.uri import PREFIX, name_id

OWNER, MAINTAINER, FRIEND, STRANGER = (checksum_address(bytes([n]) * 20) for n in (1, 2, 3, 4))
POSITION = LogPosition(7, bytes(32), bytes(32), 0)

# An event waiting for its sequence.
Act = Callable[[int], Event]


def act(kind: Any, name: str, by: str, *fields: Any) -> Act:
    return lambda sequence: kind(sequence, name_id(name), by, name, POSITION, *fields)


def misnamed(one: Act) -> Act:
    """The same event under the id of another name."""

    def wrong(sequence: int) -> Event:
        event: Any = one(sequence)
        renamed: Event = replace(event, name_id=name_id("another"))
        return renamed

    return wrong


def publish(version: str, by: str = OWNER, name: str = "note", **changes: Any) -> Act:
    sha256 = hashlib.sha256(version.encode()).digest()
    said = Announcement(1, by, f"{PREFIX}{name}@{version}", version, Cid.raw(sha256).text, sha256)
    event = Published(0, name_id(name), said._replace(**changes), POSITION)
    return lambda sequence: replace(event, sequence=sequence)


def claim(by: str = OWNER, name: str = "note") -> Act:
    return act(Claimed, name, by)


def yank(on: bool = True, by: str = OWNER, version: str = "1.0.0", reason: str = "") -> Act:
    return act(YankChanged, "note", by, version, on, reason)


def deprecate(on: bool = True, by: str = OWNER, version: str = "1.0.0", message: str = "") -> Act:
    return act(DeprecationChanged, "note", by, version, on, message)


def deprecate_name(on: bool = True, by: str = OWNER, message: str = "", new: str = "") -> Act:
    return act(NameDeprecationChanged, "note", by, on, message, new)


def maintain(on: bool = True, account: str = MAINTAINER, by: str = OWNER) -> Act:
    return act(MaintainerChanged, "note", by, account, on)


def offer(to: str = FRIEND, by: str = OWNER) -> Act:
    return act(TransferOffered, "note", by, to)


def cancel(by: str = OWNER) -> Act:
    return act(TransferCancelled, "note", by)


def accept(by: str = FRIEND, former: str = OWNER) -> Act:
    return act(Transferred, "note", by, former)


def renounce(by: str = OWNER) -> Act:
    return act(Renounced, "note", by)


def sponsored(by: str = OWNER, nonce: int = 0, name: str = "note") -> Act:
    return act(Sponsored, name, by, STRANGER, nonce)


def commit(made_at: int, commitment: bytes = b"\x01" * 32) -> Act:
    return lambda sequence: Committed(sequence, commitment, STRANGER, made_at, POSITION)


def after(*acts: Act) -> Ledger:
    ledger = Ledger()
    for one in acts:
        ledger.apply(one(ledger.count + 1))
    return ledger


def note(*acts: Act) -> NameState:
    return after(*acts).names["note"]


def test_the_first_release_claims_the_name_and_the_list_keeps_the_order_of_publication() -> None:
    state = note(publish("1.0.0"), publish("0.9.0"), publish("2.0.0-rc.1"))
    assert (state.owner, state.pending_owner, state.epoch) == (OWNER, None, 0)
    assert [x.semver for x in state.releases] == ["1.0.0", "0.9.0", "2.0.0-rc.1"]
    assert [x.sequence for x in state.releases] == [1, 2, 3]
    assert {x.publisher for x in state.releases} == {OWNER}


def test_a_release_is_yanked_and_deprecated_and_both_are_taken_back() -> None:
    acts = [publish("1.0.0"), yank(reason="leaks"), deprecate(message="use 2")]
    (release,) = note(*acts).releases
    assert (release.yanked, release.yank_reason) == (True, "leaks")
    assert (release.deprecated, release.message) == (True, "use 2")
    (release,) = note(*acts, yank(False), deprecate(False)).releases
    assert (release.yanked, release.yank_reason) == (False, "")
    assert (release.deprecated, release.message) == (False, "")


def test_a_name_is_deprecated_for_another_one_and_that_is_taken_back() -> None:
    state = note(claim(), deprecate_name(message="unmaintained", new="memo"))
    assert (state.deprecated, state.message, state.replaced_by) == (True, "unmaintained", "memo")
    state = note(claim(), deprecate_name(new="memo"), deprecate_name(False))
    assert (state.deprecated, state.message, state.replaced_by) == (False, "", "")


def test_a_maintainer_publishes_yanks_deprecates_and_leaves() -> None:
    acts = [claim(), maintain(), publish("1.0.0", by=MAINTAINER), yank(by=MAINTAINER)]
    acts.append(deprecate(by=MAINTAINER))
    assert note(*acts).maintainers == {MAINTAINER}
    assert note(*acts, maintain(False, by=MAINTAINER)).maintainers == set()


def test_a_transfer_and_a_renouncement_void_what_the_owner_granted() -> None:
    state = note(claim(), maintain(), deprecate_name(), offer(STRANGER), offer(), accept())
    assert (state.owner, state.pending_owner, state.epoch) == (FRIEND, None, 1)
    assert (state.maintainers, state.deprecated, state.renounced) == (set(), True, False)
    state = note(claim(), maintain(), offer(), renounce())
    assert (state.owner, state.pending_owner, state.epoch) == (None, None, 1)
    assert (state.maintainers, state.renounced) == (set(), True)


def test_a_sponsored_release_is_the_signers_and_uses_up_a_nonce() -> None:
    ledger = after(sponsored(), publish("1.0.0"), sponsored(nonce=1), publish("1.1.0"))
    assert ledger.nonces == {OWNER: 2}
    assert ledger.names["note"].owner == OWNER


def test_a_commitment_counts_from_when_it_was_last_made() -> None:
    assert after(commit(5), commit(9)).commitments == {b"\x01" * 32: 9}


LONG = "x" * (MAX_REASON_BYTES + 1)
REFUSED: dict[str, tuple[list[Act], Act]] = {
    "a gap": ([claim()], lambda _: claim(name="memo")(3)),
    "an event twice": ([claim()], lambda _: claim()(1)),
    "another name's id": ([], misnamed(claim())),
    "another name's id in a publication": (
        [],
        misnamed(publish("1.0.0")),
    ),
    "no name": ([], claim(name="No-Name")),
    "no URI": ([], publish("1.0.0", cap_uri="did:nuwa:cap:note")),
    "another version in the URI": ([], publish("1.0.0", cap_uri=f"{PREFIX}note@1.0.1")),
    "a version that is none": ([], publish("1.0")),
    "a zero digest": ([], publish("1.0.0", sha256=bytes(32), cid=Cid.raw(bytes(32)).text)),
    "another digest's CID": ([], publish("1.0.0", cid=Cid.raw(b"\x07" * 32).text)),
    "a claim of a claimed name": ([claim()], claim(FRIEND)),
    "a claim of a renounced name": ([claim(), renounce()], claim(FRIEND)),
    "a release of a renounced name": ([claim(), renounce()], publish("1.0.0", by=OWNER)),
    "a reserved name": ([], claim(name="ad-min")),
    "a taken skeleton": ([claim()], claim(name="n0te")),
    "a taken skeleton in a publication": ([claim()], publish("1.0.0", name="n0te")),
    "a version twice": ([publish("1.0.0")], publish("1.0.0")),
    "a publication by a stranger": ([claim()], publish("1.0.0", by=STRANGER)),
    "a publication by a former maintainer": (
        [claim(), maintain(), offer(), accept()],
        publish("1.0.0", by=MAINTAINER),
    ),
    "a publication by the former owner": ([claim(), offer(), accept()], publish("1.0.0")),
    "a yank of no release": ([publish("1.0.0")], yank(version="1.0.1")),
    "a yank of no name": ([], yank()),
    "a yank by a stranger": ([publish("1.0.0")], yank(by=STRANGER)),
    "a yank of a yanked release": ([publish("1.0.0"), yank()], yank()),
    "an unyank of a release that is not yanked": ([publish("1.0.0")], yank(False)),
    "a reason too long": ([publish("1.0.0")], yank(reason=LONG)),
    "a deprecation of no release": ([publish("1.0.0")], deprecate(version="1.0.1")),
    "a deprecation by a stranger": ([publish("1.0.0")], deprecate(by=STRANGER)),
    "a deprecation twice": ([publish("1.0.0"), deprecate()], deprecate()),
    "an undeprecation of nothing": ([publish("1.0.0")], deprecate(False)),
    "a message too long": ([publish("1.0.0")], deprecate(message=LONG)),
    "a name deprecated by a maintainer": ([claim(), maintain()], deprecate_name(by=MAINTAINER)),
    "a name deprecated twice": ([claim(), deprecate_name()], deprecate_name()),
    "a name undeprecated that is not": ([claim()], deprecate_name(False)),
    "a name replaced by none": ([claim()], deprecate_name(new="No-Name")),
    "a name's message too long": ([claim()], deprecate_name(message=LONG)),
    "a maintainer of nothing": ([], maintain()),
    "a maintainer added by a maintainer": (
        [claim(), maintain()],
        maintain(True, FRIEND, MAINTAINER),
    ),
    "a maintainer added twice": ([claim(), maintain()], maintain()),
    "the owner as a maintainer": ([claim()], maintain(account=OWNER)),
    "nobody as a maintainer": ([claim()], maintain(account=ZERO_ADDRESS)),
    "a maintainer removed who is none": ([claim()], maintain(False)),
    "a maintainer removed by another": (
        [claim(), maintain(), maintain(account=FRIEND)],
        maintain(False, by=FRIEND),
    ),
    "an offer by a stranger": ([claim()], offer(by=STRANGER)),
    "an offer to the owner": ([claim()], offer(OWNER)),
    "an offer to nobody": ([claim()], offer(ZERO_ADDRESS)),
    "an acceptance without an offer": ([claim()], accept()),
    "an acceptance by another": ([claim(), offer()], accept(STRANGER)),
    "an acceptance after it was cancelled": ([claim(), offer(), cancel()], accept()),
    "an acceptance after a renouncement": ([claim(), offer(), renounce()], accept()),
    "an acceptance from another owner": ([claim(), offer()], accept(former=STRANGER)),
    "a cancellation without an offer": ([claim()], cancel()),
    "a cancellation by the recipient": ([claim(), offer()], cancel(FRIEND)),
    "a renouncement by a maintainer": ([claim(), maintain()], renounce(MAINTAINER)),
    "a renouncement twice": ([claim(), renounce()], renounce()),
    "a nonce used again": ([sponsored(), publish("1.0.0")], sponsored()),
    "a nonce skipped": ([], sponsored(nonce=1)),
    "a sponsored release that does not come": ([sponsored()], claim()),
    "a sponsored release by another": ([sponsored()], publish("1.0.0", by=FRIEND)),
    "a sponsored release of another name": ([sponsored()], publish("1.0.0", name="memo")),
    "a commitment made before it was made": ([commit(9)], commit(9)),
    "a vote": ([claim()], act(Voted, "note", STRANGER, 1, 1)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_the_contract_refuses_cannot_have_happened(what: str) -> None:
    acts, wrong = REFUSED[what]
    ledger = after(*acts)
    before = copy.deepcopy(ledger)
    with pytest.raises(InvalidInput) as refusal:
        ledger.apply(wrong(ledger.count + 1))
    assert "cannot have happened" in refusal.value.message
    assert refusal.value.why
    assert ledger == before


ANYTHING = st.sampled_from([one for acts, wrong in REFUSED.values() for one in (*acts, wrong)])


@given(st.lists(ANYTHING, max_size=30))
def test_any_events_in_any_order_are_folded_or_refused(acts: list[Act]) -> None:
    ledger = Ledger()
    for one in acts:
        before = copy.deepcopy(ledger)
        try:
            ledger.apply(one(ledger.count + 1))
        except InvalidInput:
            assert ledger == before
    for state in ledger.names.values():
        assert state.owner not in state.maintainers
        assert state.pending_owner is None or state.pending_owner != state.owner
        assert not state.renounced or (state.epoch > 0 and not state.maintainers)
