"""Names as the chain's own logs tell them, held against what the contract keeps at the same block.

No node has to be trusted for it, and an endpoint that leaves logs out is noticed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from capdex.errors import Code, InvalidInput, Unavailable
from capdex.registry.events import (
    TOPICS,
    Committed,
    Event,
    MaintainerChanged,
    Published,
    Sponsored,
    TransferOffered,
    Voted,
)
from capdex.registry.state import Ledger, NameState, ReleaseState
from capdex.uri import CapabilityURI, name_id
from publisher.ethereum import log_scan as history
from publisher.registry.registry import NameRecord, Registry

IDS_PER_FILTER: Final = 100  # topics of one eth_getLogs: a few kilobytes of request


@dataclass(frozen=True, slots=True)
class Held:
    """What an account is to a name: `owner`, `maintainer`, or `offered` to it."""

    name: str
    role: str
    state: NameState


async def name_state(registry: Registry, name: str) -> tuple[NameState | None, int]:
    """A name, None if nobody ever claimed it, and the number of the block it was read at.

    Raises Unavailable RPC_UNAVAILABLE when the history is out of reach or has gaps.
    """
    block = await registry.head()
    record = await registry.name_record(name, block=block)
    if not record.claimed:
        return None, block
    events = await registry.history(name, upto=block)
    return _folded(registry, name, events, record), block


async def name_view(registry: Registry, name: str) -> tuple[NameState | None, int]:
    """A name by the contract's views alone, for where its history is out of reach.

    What only the log tells is missing: maintainers, reasons, messages, publishers, sequences.
    """
    block = await registry.head()
    record = await registry.name_record(name, block=block)
    if not record.claimed:
        return None, block
    releases = [
        ReleaseState(x.semver, x.cid, x.sha256, "", 0, yanked=x.yanked, deprecated=x.deprecated)
        for x in await registry.releases(name)
    ]
    state = NameState(record.owner, record.pending_owner, record.epoch)
    state.deprecated, state.releases = record.deprecated, releases
    return state, block


async def names_held(registry: Registry, account: str) -> tuple[list[Held], int]:
    """Every name that an account owns, maintains or is offered, by name; and the block of it."""
    block = await registry.head()
    names = await _ever_held(registry, account, block)
    events: dict[str, list[Event]] = defaultdict(list)
    ids = ["0x" + name_id(name).hex() for name in names]
    for first in range(0, len(ids), IDS_PER_FILTER):
        chosen = ids[first : first + IDS_PER_FILTER]
        for event in await history.events(registry, [None, chosen], upto=block):
            events[_name(event)].append(event)
    held = []
    for name in names:
        record = await registry.name_record(name, block=block)
        state = _folded(registry, name, events[name], record)
        if role := _role(state, account):
            held.append(Held(name, role, state))
    return held, block


def fold(events: Iterable[Event]) -> NameState | None:
    """The state that the events of one name leave; raises InvalidInput if they cannot be that."""
    ledger, found = Ledger(), None
    for event in events:
        if isinstance(event, Sponsored):  # says who paid; its nonce counts over all names
            continue
        # A ledger takes every event of a registry; of one name they are numbered anew.
        ledger.apply(replace(event, sequence=ledger.count + 1))
        found = ledger.names[_name(event)]
        if isinstance(event, Published):
            found.releases[-1].sequence = event.sequence
    return found


def _folded(
    registry: Registry, name: str, events: Sequence[Event], record: NameRecord
) -> NameState:
    try:
        state = fold(events)
    except InvalidInput as error:
        raise _gaps(registry, name, error.why or error.message) from None
    if state is None:
        raise _gaps(registry, name, "it gives none of its events")
    told = NameRecord(
        state.owner, state.pending_owner, len(state.releases), state.epoch, state.deprecated
    )
    if told != record:
        raise _gaps(registry, name, f"its events come to {told}, the contract keeps {record}")
    return state


def _gaps(registry: Registry, name: str, why: str) -> Unavailable:
    return Unavailable(
        f'the endpoint does not give the whole history of "{name}"',
        Code.RPC_UNAVAILABLE,
        why=f"{registry.chain.endpoint.shown}: {why}",
        fix="use another endpoint (--rpc-url), or correct start-block of this network",
    )


async def _ever_held(registry: Registry, account: str, block: int) -> list[str]:
    """The names that an account ever had, or had a hand in: what it holds now is among them."""
    topic = "0x" + account[2:].lower().rjust(64, "0")
    own = [_topic(kind) for kind in ("Published", "Claimed", "Transferred")]
    given = [_topic(kind) for kind in ("MaintainerAdded", "TransferOffered")]
    names = {_name(e) for e in await history.events(registry, [own, None, topic], upto=block)}
    for event in await history.events(registry, [given], upto=block):
        to = (
            event.account if isinstance(event, MaintainerChanged)
            else event.recipient if isinstance(event, TransferOffered)
            else None
        )  # fmt: skip
        if to == account:
            names.add(_name(event))
    return sorted(names)


def _topic(kind: str) -> str:
    return "0x" + TOPICS[kind].hex()


def _role(state: NameState, account: str) -> str | None:
    if state.owner == account:
        return "owner"
    if account in state.maintainers:
        return "maintainer"
    return "offered" if state.pending_owner == account else None


def _name(event: Event) -> str:
    """The name that an event is about; raises InvalidInput for one that is about none."""
    if isinstance(event, Published):
        return CapabilityURI.exact(event.announcement.cap_uri).name
    if isinstance(event, Committed | Voted):
        raise InvalidInput(f"a {type(event).__name__} is no part of a name's history")
    return event.name
