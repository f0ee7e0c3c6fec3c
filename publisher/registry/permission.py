"""Who may change a name, asked of the chain before any gas is paid; refusals name the owner."""

from __future__ import annotations

from typing import Final

from capdex.encoding.abi import parse_address
from capdex.errors import InvalidInput, UsageError
from publisher import errors as refusals
from publisher.ethereum.contract import NO_ADDRESS
from publisher.registry.registry import NameRecord, Registry, Release

MAX_REASON_BYTES: Final = 500  # the contract's own bound: room for a sentence or two


async def claimed(registry: Registry, name: str) -> NameRecord:
    """The record of a name that somebody claimed; raises InvalidInput NOT_FOUND."""
    record = await registry.name_record(name)
    if not record.claimed:
        raise refusals.no_such_name(name)
    return record


async def owned(registry: Registry, name: str, sender: str) -> NameRecord:
    """The record of a name that `sender` owns; raises NOT_FOUND and Refused NOT_OWNER."""
    record = await claimed(registry, name)
    if record.renounced:
        raise refusals.given_up(name)
    if record.owner != sender:
        raise refusals.not_owner(name, sender, record.owner or "")
    return record


async def own_release(registry: Registry, name: str, semver: str, sender: str) -> Release:
    """A release that `sender` may change; raises NOT_FOUND and Refused NOT_OWNER."""
    record = await claimed(registry, name)
    release = await registry.release(name, semver)
    if release is None:
        raise refusals.no_such_release(name, semver)
    if record.renounced:
        raise refusals.given_up(name)
    if record.owner != sender and not await registry.is_maintainer(name, sender):
        raise refusals.not_maintainer(name, sender, record.owner or "")
    return release


def words(text: str) -> str:
    """A reason or message that the contract takes: UTF-8 and short; raises InvalidInput."""
    try:
        length = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidInput(
            "the reason or message is not text",
            why=f"{text[:80]!r} has bytes that are not UTF-8",
            fix="type it again, in UTF-8",
        ) from None
    if length > MAX_REASON_BYTES:
        raise refusals.reason_too_long(length)
    return text


def somebody(address: str) -> str:
    """The checksummed address of an account; raises UsageError, also for the zero address."""
    checked = parse_address(address)
    if checked == NO_ADDRESS:
        raise UsageError("the zero address is nobody's", fix="name the account of a person")
    return checked
