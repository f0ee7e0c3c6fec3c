"""Events of the registry and of the votes contract, decoded from raw logs (P11–P13).

Every event has `sequence` (from 1, over all events of its contract), the 32-byte id and the text
of its `name`, the account that caused it (`by`, EIP-55), and its `position` on chain. Decoding
checks the shape alone; `capdex.registry.state` checks which event may follow which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from capdex.encoding.abi import account, address, publication, signed, string, unsigned, words
from capdex.encoding.keccak import keccak
from capdex.errors import InvalidInput
from capdex.registry.logs import LogPosition, RawLog


class Announcement(NamedTuple):
    """The unchecked claims of a publication: all that `verify` needs from the chain.

    `publisher` is a checksummed address.
    """

    chain_id: int
    publisher: str
    cap_uri: str
    semver: str
    cid: str
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Published:
    """A release was announced; the first of a name also claims it."""

    sequence: int
    name_id: bytes
    announcement: Announcement
    position: LogPosition


@dataclass(frozen=True, slots=True)
class NameEvent:
    """An event about one name, whose text is in the event."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class YankChanged(NameEvent):
    """A release was yanked (with a reason) or un-yanked."""

    semver: str
    yanked: bool
    reason: str


@dataclass(frozen=True, slots=True)
class DeprecationChanged(NameEvent):
    """A release was deprecated (with a message) or un-deprecated."""

    semver: str
    deprecated: bool
    message: str


@dataclass(frozen=True, slots=True)
class NameDeprecationChanged(NameEvent):
    """A name was deprecated as a whole or un-deprecated; `replaced_by` may be empty."""

    deprecated: bool
    message: str
    replaced_by: str


@dataclass(frozen=True, slots=True)
class Claimed(NameEvent):
    """A name was claimed without a release: the account `by` owns it now."""


@dataclass(frozen=True, slots=True)
class MaintainerChanged(NameEvent):
    """An account was added to or removed from the maintainers of a name."""

    account: str
    maintains: bool


@dataclass(frozen=True, slots=True)
class TransferOffered(NameEvent):
    """The owner offered the name to `recipient`; an earlier offer is void."""

    recipient: str


@dataclass(frozen=True, slots=True)
class TransferCancelled(NameEvent):
    """The owner took the offer back."""


@dataclass(frozen=True, slots=True)
class Transferred(NameEvent):
    """The recipient accepted the offer: the account `by` owns the name now."""

    former_owner: str


@dataclass(frozen=True, slots=True)
class Renounced(NameEvent):
    """The owner gave the name up permanently."""


@dataclass(frozen=True, slots=True)
class Sponsored(NameEvent):
    """The next event publishes what `by` signed with `nonce`; `sender` paid for the transaction."""

    sender: str
    nonce: int


@dataclass(frozen=True, slots=True)
class Committed:
    """A 32-byte commitment to an unnamed capability name was made at `made_at` (block time, s)."""

    sequence: int
    commitment: bytes
    by: str
    made_at: int
    position: LogPosition


@dataclass(frozen=True, slots=True)
class Voted(NameEvent):
    """A vote, from the votes contract: 1, -1, or 0 for a withdrawn one, with its weight."""

    vote: int
    weight: int


Event = Published | Committed | NameEvent

_HEAD = "(bytes32,address,uint64"  # common to every signature; `bytes32` and `address` are topics
_NAMED = f"{_HEAD},string"  # common to the events of a name; word 0 of the data is the sequence
PUBLISHED: Final = keccak(f"Published{_NAMED},string,string,bytes32)".encode())
COMMITTED: Final = keccak(f"Committed{_HEAD},uint64)".encode())


def _marked(data: bytes) -> tuple[str, bool, str]:
    return string(data, 2), True, words(data, 3)


# What is made of the data of each event, which has its own parameters from slot 2 on.
_READERS: Final[dict[str, tuple[type[NameEvent], Callable[[bytes], tuple[Any, ...]]]]] = {
    "Yanked,string,string": (YankChanged, _marked),
    "Unyanked,string": (YankChanged, lambda x: (string(x, 2), False, "")),
    "Deprecated,string,string": (DeprecationChanged, _marked),
    "Undeprecated,string": (DeprecationChanged, lambda x: (string(x, 2), False, "")),
    "NameDeprecated,string,string": (
        NameDeprecationChanged,
        lambda x: (True, words(x, 2), string(x, 3)),
    ),
    "NameUndeprecated": (NameDeprecationChanged, lambda _: (False, "", "")),
    "Claimed": (Claimed, lambda _: ()),
    "MaintainerAdded,address": (MaintainerChanged, lambda x: (address(x, 2), True)),
    "MaintainerRemoved,address": (MaintainerChanged, lambda x: (address(x, 2), False)),
    "TransferOffered,address": (TransferOffered, lambda x: (address(x, 2),)),
    "TransferCancelled": (TransferCancelled, lambda _: ()),
    "Transferred,address": (Transferred, lambda x: (address(x, 2),)),
    "Renounced": (Renounced, lambda _: ()),
    "Sponsored,address,uint256": (Sponsored, lambda x: (address(x, 2), unsigned(x, 3, 256))),
    "Voted,int8,uint256": (Voted, lambda x: (signed(x, 2, 8), unsigned(x, 3, 256))),
}

# Topic 0 by the name of the event.
TOPICS: Final = {"Published": PUBLISHED, "Committed": COMMITTED} | {
    name: keccak(f"{name}{_NAMED}{comma}{types})".encode())
    for name, comma, types in (x.partition(",") for x in _READERS)
}
_BY_TOPIC: Final = {TOPICS[x.partition(",")[0]]: made for x, made in _READERS.items()}


def decode(log: RawLog, chain_id: int) -> Event:
    """Decode one log; raises InvalidInput for anything that is not a well-formed event."""
    _, topics, data, position = log
    if len(topics) != 3 or not len(topics[0]) == len(topics[1]) == len(topics[2]) == 32:
        raise InvalidInput(f"a registry event has 3 topics of 32 bytes, this log {topics!r:.80}")
    kind, subject, topic = topics
    by = account(topic)
    if kind == PUBLISHED:
        sequence, cap_uri, semver, cid, sha256 = publication(data)
        announcement = Announcement(chain_id, by, cap_uri, semver, cid, sha256)
        return Published(sequence, subject, announcement, position)
    sequence = unsigned(data, 0, 64)
    if kind == COMMITTED:
        return Committed(sequence, subject, by, unsigned(data, 1, 64), position)
    if kind not in _BY_TOPIC:
        raise InvalidInput(f"0x{kind.hex()} is not a topic of the registry")
    event, read = _BY_TOPIC[kind]
    return event(sequence, subject, by, string(data, 1), position, *read(data))
