"""Events of the registry and of the votes contract, decoded from raw logs (P11–P13).

Every event has `sequence` (from 1, over all events of its contract), the 32-byte id and the text
of its `name`, the account that caused it (`by`, EIP-55), and its `position` on chain. Decoding
checks the shape alone; `capdex.registry.state` checks which event may follow which.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from capdex.encoding.abi import (
    MAX_STRING_BYTES,
    account,
    address,
    publication,
    signed,
    string,
    unsigned,
    words,
)
from capdex.encoding.keccak import keccak
from capdex.errors import InvalidInput
from capdex.registry.logs import LogHead, LogPosition, RawLog

__all__ = [
    "MAX_STRING_BYTES",
    "PUBLISHED",
    "TOPICS",
    "UNYANKED",
    "YANKED",
    "Announcement",
    "Claimed",
    "Committed",
    "DeprecationChanged",
    "Event",
    "LogHead",
    "LogPosition",
    "MaintainerChanged",
    "NameDeprecationChanged",
    "Published",
    "RawLog",
    "Renounced",
    "Sponsored",
    "TransferCancelled",
    "TransferOffered",
    "Transferred",
    "Voted",
    "YankChanged",
    "decode",
]


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
class YankChanged:
    """A release was yanked (with a reason) or un-yanked."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    semver: str
    yanked: bool
    reason: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class DeprecationChanged:
    """A release was deprecated (with a message) or un-deprecated."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    semver: str
    deprecated: bool
    message: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class NameDeprecationChanged:
    """A name was deprecated as a whole or un-deprecated; `replaced_by` may be empty."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    deprecated: bool
    message: str
    replaced_by: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class Claimed:
    """A name was claimed without a release: the account `by` owns it now."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class MaintainerChanged:
    """An account was added to or removed from the maintainers of a name."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    account: str
    maintains: bool
    position: LogPosition


@dataclass(frozen=True, slots=True)
class TransferOffered:
    """The owner offered the name to `recipient`; an earlier offer is void."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    recipient: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class TransferCancelled:
    """The owner took the offer back."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class Transferred:
    """The recipient accepted the offer: the account `by` owns the name now."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    former_owner: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class Renounced:
    """The owner gave the name up permanently."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    position: LogPosition


@dataclass(frozen=True, slots=True)
class Sponsored:
    """The next event publishes what `by` signed with `nonce`; `sender` paid for the transaction."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    sender: str
    nonce: int
    position: LogPosition


@dataclass(frozen=True, slots=True)
class Committed:
    """A 32-byte commitment to an unnamed capability name was made at `made_at` (block time, s)."""

    sequence: int
    commitment: bytes
    by: str
    made_at: int
    position: LogPosition


@dataclass(frozen=True, slots=True)
class Voted:
    """A vote, from the votes contract: 1, -1, or 0 for a withdrawn one, with its weight."""

    sequence: int
    name_id: bytes
    by: str
    name: str
    vote: int
    weight: int
    position: LogPosition


Event = (
    Published
    | YankChanged
    | DeprecationChanged
    | NameDeprecationChanged
    | Claimed
    | MaintainerChanged
    | TransferOffered
    | TransferCancelled
    | Transferred
    | Renounced
    | Sponsored
    | Committed
    | Voted
)

# The start of every event: sequence, second topic, account.
_Head = tuple[int, bytes, str]
_Reader = Callable[[_Head, bytes, LogPosition], Event]

_HEAD = "(bytes32,address,uint64"  # common to every signature; `bytes32` and `address` are topics
PUBLISHED: Final = keccak(f"Published{_HEAD},string,string,string,bytes32)".encode())

# Keyed by the whole signature; word 0 of the data is the sequence.
_READERS: Final[dict[str, _Reader]] = {
    f"Yanked{_HEAD},string,string,string)": lambda head, data, at: YankChanged(
        *head, string(data, 1), string(data, 2), True, words(data, 3), at
    ),
    f"Unyanked{_HEAD},string,string)": lambda head, data, at: YankChanged(
        *head, string(data, 1), string(data, 2), False, "", at
    ),
    f"Deprecated{_HEAD},string,string,string)": lambda head, data, at: DeprecationChanged(
        *head, string(data, 1), string(data, 2), True, words(data, 3), at
    ),
    f"Undeprecated{_HEAD},string,string)": lambda head, data, at: DeprecationChanged(
        *head, string(data, 1), string(data, 2), False, "", at
    ),
    f"NameDeprecated{_HEAD},string,string,string)": lambda head, data, at: NameDeprecationChanged(
        *head, string(data, 1), True, words(data, 2), string(data, 3), at
    ),
    f"NameUndeprecated{_HEAD},string)": lambda head, data, at: NameDeprecationChanged(
        *head, string(data, 1), False, "", "", at
    ),
    f"Claimed{_HEAD},string)": lambda head, data, at: Claimed(*head, string(data, 1), at),
    f"MaintainerAdded{_HEAD},string,address)": lambda head, data, at: MaintainerChanged(
        *head, string(data, 1), address(data, 2), True, at
    ),
    f"MaintainerRemoved{_HEAD},string,address)": lambda head, data, at: MaintainerChanged(
        *head, string(data, 1), address(data, 2), False, at
    ),
    f"TransferOffered{_HEAD},string,address)": lambda head, data, at: TransferOffered(
        *head, string(data, 1), address(data, 2), at
    ),
    f"TransferCancelled{_HEAD},string)": lambda head, data, at: TransferCancelled(
        *head, string(data, 1), at
    ),
    f"Transferred{_HEAD},string,address)": lambda head, data, at: Transferred(
        *head, string(data, 1), address(data, 2), at
    ),
    f"Renounced{_HEAD},string)": lambda head, data, at: Renounced(*head, string(data, 1), at),
    f"Sponsored{_HEAD},string,address,uint256)": lambda head, data, at: Sponsored(
        *head, string(data, 1), address(data, 2), unsigned(data, 3, 256), at
    ),
    f"Committed{_HEAD},uint64)": lambda head, data, at: Committed(*head, unsigned(data, 1, 64), at),
    f"Voted{_HEAD},string,int8,uint256)": lambda head, data, at: Voted(
        *head, string(data, 1), signed(data, 2, 8), unsigned(data, 3, 256), at
    ),
}
_BY_TOPIC: Final = {keccak(signature.encode()): read for signature, read in _READERS.items()}

# Topic 0 by the name of the event.
TOPICS: Final = {"Published": PUBLISHED} | {
    x.partition("(")[0]: keccak(x.encode()) for x in _READERS
}
YANKED: Final = TOPICS["Yanked"]
UNYANKED: Final = TOPICS["Unyanked"]


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
    read = _BY_TOPIC.get(kind)
    if read is None:
        raise InvalidInput(f"0x{kind.hex()} is not a topic of the registry")
    return read((sequence, subject, by), data, position)
