"""The state of a registry, folded from its events alone (P11–P13).

The log contains every change of the contract's state, and only changes that the contract allows.
So a `Ledger` rebuilds the contract's state, and refuses a log that no capdex registry can emit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from capdex.errors import InvalidInput
from capdex.ipld.cid import Cid
from capdex.registry.events import (
    Claimed,
    Committed,
    DeprecationChanged,
    Event,
    MaintainerChanged,
    NameDeprecationChanged,
    NameEvent,
    Published,
    Renounced,
    Sponsored,
    TransferCancelled,
    TransferOffered,
    Transferred,
    YankChanged,
)
from capdex.uri import CapabilityURI, check_name, is_reserved, name_id, skeleton

MAX_REASON_BYTES: Final = 500  # of a reason or a message; the contract refuses longer ones
ZERO_ADDRESS: Final = "0x" + "00" * 20


@dataclass(slots=True)
class ReleaseState:
    """One release; its index on chain is its index in `NameState.releases`."""

    semver: str
    cid: str
    sha256: bytes
    publisher: str
    sequence: int
    yanked: bool = False
    yank_reason: str = ""
    deprecated: bool = False
    message: str = ""


@dataclass(slots=True)
class NameState:
    """One claimed name; `owner` is None once it is renounced. Accounts are EIP-55 text."""

    owner: str | None
    pending_owner: str | None = None
    epoch: int = 0
    maintainers: set[str] = field(default_factory=set)
    deprecated: bool = False
    message: str = ""
    replaced_by: str = ""
    releases: list[ReleaseState] = field(default_factory=list)

    @property
    def renounced(self) -> bool:
        """True if the owner gave the name up: no account can own or change it again."""
        return self.owner is None

    def hand_over(self, owner: str | None) -> None:
        """Set the owner (None: renounced); offer and maintainers of the old one are void."""
        self.owner, self.pending_owner = owner, None
        self.epoch += 1
        self.maintainers.clear()


@dataclass(slots=True)
class Ledger:
    """The state of the contract after `count` events.

    `names` are keyed by their text. `commitments` has the block time of each 32-byte commitment,
    `nonces` the next nonce of each account with a sponsored publication.
    """

    count: int = 0
    names: dict[str, NameState] = field(default_factory=dict)
    commitments: dict[bytes, int] = field(default_factory=dict)
    nonces: dict[str, int] = field(default_factory=dict)
    _skeletons: dict[str, str] = field(default_factory=dict)
    _releases: dict[tuple[str, str], ReleaseState] = field(default_factory=dict)
    _sponsored: Sponsored | None = None  # the previous event; its publication must be next

    def apply(self, event: Event) -> None:
        """Apply the next event; raises InvalidInput and changes nothing if it cannot be next."""
        try:
            self._apply(event)
        except InvalidInput as error:
            what = f"event {event.sequence} ({type(event).__name__}) cannot have happened"
            raise InvalidInput(what, why=error.message) from None
        self.count += 1
        self._sponsored = event if isinstance(event, Sponsored) else None

    def _apply(self, event: Event) -> None:
        _require(event.sequence == self.count + 1, f"event {self.count + 1} is next")
        if (sponsored := self._sponsored) is not None:
            due = isinstance(event, Published) and (
                (event.name_id, event.announcement.publisher) == (sponsored.name_id, sponsored.by)
            )
            _require(due, f"the release of {sponsored.name} that {sponsored.by} signed is next")
        if isinstance(event, Committed):
            self._commit(event)
            return
        if isinstance(event, Published):
            self._publish(event)
            return
        _require(
            name_id(check_name(event.name)) == event.name_id, "its name id is that of another name"
        )
        match event:
            case Claimed():
                self._claim(event.name, event.by)
            case Sponsored():
                _require(event.nonce == self.nonces.get(event.by, 0), "its nonce is not the next")
                self.nonces[event.by] = event.nonce + 1
            case YankChanged():
                self._yank(event)
            case DeprecationChanged():
                self._deprecate(event)
            case _:
                self._change_name(event, self._name(event.name))

    # ------------------------------------------------------------------------------- releases

    def _publish(self, event: Published) -> None:
        announced = event.announcement
        uri = CapabilityURI.exact(announced.cap_uri)
        _require(str(uri.version) == announced.semver, "its URI and its version differ")
        _require(name_id(uri.name) == event.name_id, "its name id is that of another name")
        _require(any(announced.sha256), "its digest is zero")
        _require(Cid.raw(announced.sha256).text == announced.cid, "its CID is of another digest")
        _require((uri.name, announced.semver) not in self._releases, f"{uri} is published already")
        if uri.name in self.names:
            self._check_permission(uri.name, announced.publisher)
        else:
            self._claim(uri.name, announced.publisher)
        release = ReleaseState(
            announced.semver, announced.cid, announced.sha256, announced.publisher, event.sequence
        )
        self._releases[uri.name, announced.semver] = release
        self.names[uri.name].releases.append(release)

    def _yank(self, event: YankChanged) -> None:
        release = self._own_release(event)
        _require(release.yanked != event.yanked, "nothing would change")
        _check_text_length(event.reason)
        release.yanked, release.yank_reason = event.yanked, event.reason

    def _deprecate(self, event: DeprecationChanged) -> None:
        release = self._own_release(event)
        _require(release.deprecated != event.deprecated, "nothing would change")
        _check_text_length(event.message)
        release.deprecated, release.message = event.deprecated, event.message

    def _own_release(self, event: YankChanged | DeprecationChanged) -> ReleaseState:
        release = self._releases.get((event.name, event.semver))
        if release is None:
            raise InvalidInput(f"{event.name} has no release {event.semver}")
        self._check_permission(event.name, event.by)
        return release

    # ---------------------------------------------------------------------------------- names

    def _commit(self, event: Committed) -> None:
        made_at = self.commitments.get(event.commitment, 0)
        _require(event.made_at > made_at, "the same commitment was made later")
        self.commitments[event.commitment] = event.made_at

    def _claim(self, name: str, owner: str) -> None:
        _require(name not in self.names, f"{name} is claimed")
        _require(not is_reserved(name), f"{name} is reserved")
        taken_by = self._skeletons.setdefault(skeleton(name), name)
        _require(taken_by == name, f"{name} looks like {taken_by}")
        self.names[name] = NameState(owner)

    def _change_name(self, event: NameEvent, name: NameState) -> None:
        if isinstance(event, Transferred):
            _require(name.pending_owner == event.by, "the name was not offered to that account")
            _require(name.owner == event.former_owner, "its former owner was another")
            name.hand_over(event.by)
            return
        may = name.owner == event.by
        if isinstance(event, MaintainerChanged) and not event.maintains:
            may = may or event.account == event.by  # maintainers may remove themselves
        _require(may, f"{event.by} does not own {event.name}")
        match event:
            case NameDeprecationChanged():
                _require(name.deprecated != event.deprecated, "nothing would change")
                _check_text_length(event.message)
                if event.replaced_by:
                    check_name(event.replaced_by)
                name.deprecated, name.message = event.deprecated, event.message
                name.replaced_by = event.replaced_by
            case MaintainerChanged():
                _change_maintainer(name, event)
            case TransferOffered():
                _require(
                    event.recipient not in (name.owner, ZERO_ADDRESS),
                    "the recipient is the owner or the zero address",
                )
                name.pending_owner = event.recipient
            case TransferCancelled():
                _require(name.pending_owner is not None, "there is no offer")
                name.pending_owner = None
            case Renounced():
                name.hand_over(None)
            case _:
                raise InvalidInput("votes belong to another contract")

    def _name(self, name: str) -> NameState:
        _require(name in self.names, f"the name {name} is not claimed")
        return self.names[name]

    def _check_permission(self, name: str, account: str) -> None:
        state = self._name(name)
        _require(
            account == state.owner or account in state.maintainers,
            f"{account} neither owns nor maintains {name}",
        )


def _change_maintainer(name: NameState, event: MaintainerChanged) -> None:
    _require((event.account in name.maintainers) != event.maintains, "nothing would change")
    if event.maintains:
        _require(
            event.account not in (name.owner, ZERO_ADDRESS),
            "the account is the owner or the zero address",
        )
        name.maintainers.add(event.account)
    else:
        name.maintainers.remove(event.account)


def _check_text_length(text: str) -> None:
    # Each byte that is not UTF-8 was decoded as one character, so the length never grows.
    _require(len(text) <= MAX_REASON_BYTES, "its text is longer than the contract accepts")


def _require(condition: bool, why: str) -> None:
    if not condition:
        raise InvalidInput(why)
