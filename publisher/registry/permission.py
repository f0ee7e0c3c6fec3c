"""Check on chain that an account may change a name, before any gas is paid."""

from __future__ import annotations

from capdex.encoding.abi import parse_address
from capdex.errors import Code, InvalidInput, UsageError
from capdex.registry.state import MAX_REASON_BYTES, ZERO_ADDRESS, NameState, ReleaseState
from publisher import errors as refusals
from publisher.registry.registry import Registry


async def claimed(registry: Registry, name: str) -> NameState:
    """Return a name that was claimed; raises InvalidInput NOT_FOUND."""
    state = await registry.name_state(name)
    if state is None:
        raise refusals.no_such_name(name)
    return state


async def owned(registry: Registry, name: str, sender: str) -> NameState:
    """Return a name that `sender` owns; raises NOT_FOUND and Refused NOT_OWNER."""
    state = await claimed(registry, name)
    if state.renounced:
        raise refusals.given_up(name)
    if state.owner != sender:
        raise refusals.not_owner(name, sender, state.owner or "")
    return state


async def own_release(registry: Registry, name: str, semver: str, sender: str) -> ReleaseState:
    """Return a release that `sender` may change; raises NOT_FOUND and Refused NOT_OWNER."""
    state = await claimed(registry, name)
    release = await registry.release(name, semver)
    if release is None:
        raise refusals.no_such_release(name, semver)
    if state.renounced:
        raise refusals.given_up(name)
    if state.owner != sender and not await registry.is_maintainer(name, sender):
        raise refusals.not_maintainer(name, sender, state.owner or "")
    return release


def check_text(text: str) -> str:
    """Return a reason or message if it is short UTF-8 text, else raise InvalidInput."""
    try:
        length = len(text.encode("utf-8"))
    except UnicodeEncodeError:
        raise InvalidInput(
            "the reason or message is not text",
            why=f"{text[:80]!r} has bytes that are not UTF-8",
            fix="type it again, in UTF-8",
        ) from None
    if length > MAX_REASON_BYTES:
        raise InvalidInput(
            "the reason or message is too long",
            Code.TOO_LARGE,
            why=f"it has {length} bytes, and at most {MAX_REASON_BYTES} are allowed",
            fix="say it in a sentence, and the rest on your homepage",
        )
    return text


def parse_account(address: str) -> str:
    """Return the checksummed address of an account; raises UsageError for the zero address, too."""
    checked = parse_address(address)
    if checked == ZERO_ADDRESS:
        raise UsageError("the zero address is nobody's", fix="name the account of a person")
    return checked
