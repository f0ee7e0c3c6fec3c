"""Rebuild names from the chain's logs and check them against the contract at the same block.

No node has to be trusted, and an endpoint that leaves logs out is detected.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from capdex.encoding.hexadecimal import to_hex
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
from capdex.registry.state import Ledger, NameState
from capdex.uri import CapabilityURI, name_id
from capdex_publisher.ethereum.contract import all_events
from capdex_publisher.registry.registry import Registry

IDS_PER_FILTER: Final = 100  # topics of one eth_getLogs: a few kilobytes of request


@dataclass(frozen=True, slots=True)
class HeldName:
    """A name and an account's role in it: `owner`, `maintainer`, or `offered` to it."""

    name: str
    role: str
    state: NameState


async def name_state(registry: Registry, name: str) -> tuple[NameState | None, int]:
    """Return a name (None if it was never claimed) and the number of the block it was read at.

    Raises Unavailable RPC_UNAVAILABLE when the history is out of reach or has gaps.
    """
    block = await registry.chain.head()
    record, count = await registry.name_record(name, block=block)
    if record is None:
        return None, block
    events = await registry.history(name, upto=block)
    return _checked(registry, name, events, record, count), block


async def name_view(registry: Registry, name: str) -> tuple[NameState | None, int]:
    """Return a name from the contract's views alone, for where its history is out of reach.

    Missing is what only the log has: maintainers, reasons, messages, publishers, sequences.
    """
    block = await registry.chain.head()
    state = await registry.name_state(name, block=block)
    if state is not None:
        state.releases = await registry.releases(name)
    return state, block


async def names_held(registry: Registry, account: str) -> tuple[list[HeldName], int]:
    """Return the names that an account owns, maintains or is offered, and the block they are of."""
    block = await registry.chain.head()
    names = await _ever_held(registry, account, block)
    events: dict[str, list[Event]] = defaultdict(list)
    ids = [to_hex(name_id(name)) for name in names]
    for first in range(0, len(ids), IDS_PER_FILTER):
        chosen = ids[first : first + IDS_PER_FILTER]
        for event in await all_events(registry, [None, chosen], upto=block):
            events[_name(event)].append(event)
    held = []
    for name in names:
        record, count = await registry.name_record(name, block=block)
        state = _checked(registry, name, events[name], record, count)
        if role := _role(state, account):
            held.append(HeldName(name, role, state))
    return held, block


def fold(events: Iterable[Event]) -> NameState | None:
    """Return the state after the events of one name; raises InvalidInput if one cannot follow."""
    ledger, state = Ledger(), None
    for event in events:
        if isinstance(event, Sponsored):  # names the payer; its nonce counts over all names
            continue
        # A ledger takes every event of a registry; of one name they are numbered anew.
        ledger.apply(replace(event, sequence=ledger.count + 1))
        state = ledger.names[_name(event)]
        if isinstance(event, Published):
            state.releases[-1].sequence = event.sequence
    return state


def _checked(
    registry: Registry, name: str, events: Sequence[Event], record: NameState | None, count: int
) -> NameState:
    """Return the state after the events, if the contract keeps the same."""
    try:
        state = fold(events)
    except InvalidInput as error:
        raise _gaps(registry, name, error.why or error.message) from None
    if state is None:
        raise _gaps(registry, name, "it gives none of its events")
    rebuilt = NameState(state.owner, state.pending_owner, state.epoch, deprecated=state.deprecated)
    if (rebuilt, len(state.releases)) != (record, count):
        raise _gaps(
            registry,
            name,
            f"its events lead to {rebuilt} with {len(state.releases)} releases, "
            f"the contract keeps {record} with {count}",
        )
    return state


def _gaps(registry: Registry, name: str, why: str) -> Unavailable:
    return Unavailable(
        f'the endpoint does not give the whole history of "{name}"',
        Code.RPC_UNAVAILABLE,
        why=f"{registry.chain.rpc.endpoint}: {why}",
        fix="use another endpoint (--rpc-url), or correct start-block of this network",
    )


async def _ever_held(registry: Registry, account: str, block: int) -> list[str]:
    """Return the names that an account ever held or was named in: a superset of what it holds."""
    topic = "0x" + account[2:].lower().rjust(64, "0")
    own = [_topic(kind) for kind in ("Published", "Claimed", "Transferred")]
    given = [_topic(kind) for kind in ("MaintainerAdded", "TransferOffered")]
    names = {_name(e) for e in await all_events(registry, [own, None, topic], upto=block)}
    for event in await all_events(registry, [given], upto=block):
        to = (
            event.account if isinstance(event, MaintainerChanged)
            else event.recipient if isinstance(event, TransferOffered)
            else None
        )  # fmt: skip
        if to == account:
            names.add(_name(event))
    return sorted(names)


def _topic(kind: str) -> str:
    return to_hex(TOPICS[kind])


def _role(state: NameState, account: str) -> str | None:
    if state.owner == account:
        return "owner"
    if account in state.maintainers:
        return "maintainer"
    return "offered" if state.pending_owner == account else None


def _name(event: Event) -> str:
    """Return the name that an event is about; raises InvalidInput for one that is about none."""
    if isinstance(event, Published):
        return CapabilityURI.exact(event.announcement.cap_uri).name
    if isinstance(event, Committed | Voted):
        raise InvalidInput(f"a {type(event).__name__} is not a part of a name's history")
    return event.name
