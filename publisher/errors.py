"""Refusals in our words: plans say them before gas is paid, reverts when one slips by."""

from __future__ import annotations

from typing import Final

from capdex.errors import Code, InvalidInput, Refused

NO_ADDRESS: Final = "0x" + "00" * 20


def name_taken(name: str, taken_by: str, owner: str = "") -> Refused:
    """A name that cannot be claimed: another account owns it, or a name that looks like it."""
    if name == taken_by:
        message = f'"{name}" belongs to another account'
        why = "a name belongs to the account that claimed it first"
    else:
        message = f'"{name}" looks the same as "{taken_by}"'
        why = 'names are unique after 0→o, 1→l, i→l and without "-"'
    owned = f" (owner {owner})" if owner else ""
    fix = f"pick another name, or ask the owner to add you: capdex maintainer add {taken_by} <you>"
    return Refused(message + owned, Code.NAME_TAKEN, why=why, fix=fix)


def name_reserved(name: str) -> Refused:
    """A name that looks like a word nobody may claim."""
    return Refused(
        f'"{name}" is reserved',
        Code.NAME_RESERVED,
        why="it looks like a word of the protocol, or one that would mislead people",
        fix="pick another name",
    )


def renounced(name: str) -> Refused:
    """A name that was given up: nobody can own it, or change it, any more."""
    return Refused(
        f'"{name}" was given up by its owner',
        Code.NAME_TAKEN,
        why="a renounced name can never be claimed again, and nothing of it changes any more",
        fix="pick another name",
    )


def given_up(name: str) -> Refused:
    """A change to a name that nobody owns any more."""
    return Refused(
        f'"{name}" was given up by its owner',
        Code.NOT_OWNER,
        why="a renounced name stays as it is: nobody can change it, or publish under it, any more",
        fix="publish under another name",
    )


def not_owner(name: str, caller: str, owner: str = "") -> Refused:
    """An account that tried what only the owner of a name may do."""
    owned = f"; it is {owner}" if owner else ""
    return Refused(
        f'"{name}" does not belong to {caller}',
        Code.NOT_OWNER,
        why=f"only its owner may do this{owned}",
        fix="use the owner's account (--keystore or --signer), or ask the owner to do it",
    )


def not_maintainer(name: str, caller: str, owner: str = "") -> Refused:
    """An account that tried what the owner and the maintainers of a name may do."""
    owned = f" ({owner})" if owner else ""
    return Refused(
        f'{caller} neither owns nor maintains "{name}"',
        Code.NOT_OWNER,
        why=f"only its owner{owned} and its maintainers publish and change its releases",
        fix=f"ask the owner to run: capdex maintainer add {name} {caller}",
    )


def no_offer(name: str, caller: str, pending: str = "") -> Refused:
    """An account that accepts a name which is not on offer to it."""
    offered = f"it is on offer to {pending}" if pending else "it is not on offer"
    return Refused(
        f'"{name}" is not on offer to {caller}',
        Code.NOT_OWNER,
        why=f"{offered}; only the account that a name is offered to can accept it",
        fix=f"ask the owner to run: capdex transfer offer {name} {caller}",
    )


def invalid_recipient(name: str, recipient: str) -> InvalidInput:
    """A name offered to nobody or to its owner, or an owner made a maintainer."""
    who = "nobody" if recipient == NO_ADDRESS else f"{recipient}, who owns it"
    return InvalidInput(
        f'"{name}" cannot be given to {who}',
        why="an offer goes to another account, and an owner needs not be a maintainer",
        fix="name another account",
    )


def no_such_release(name: str, semver: str) -> InvalidInput:
    """A release that there is not."""
    return InvalidInput(
        f"{name} has no release {semver}",
        Code.NOT_FOUND,
        fix=f"list its releases: capdex show {name}",
    )


def no_such_name(name: str) -> InvalidInput:
    """A name that nobody ever claimed."""
    return InvalidInput(
        f'nobody has claimed the name "{name}"', Code.NOT_FOUND, fix="check how it is written"
    )


def version_exists(name: str, semver: str, sha256: str = "") -> InvalidInput:
    """A version that stands on chain with other bytes."""
    return InvalidInput(
        f"{name} {semver} is published already, with other bytes",
        Code.VERSION_EXISTS,
        why=f"the registry holds sha256 {sha256}" if sha256 else "a version is never used twice",
        fix="raise the version in metadata.id, sign again and publish that",
    )


def reason_too_long(length: int) -> InvalidInput:
    """A reason or message that the contract would not take."""
    return InvalidInput(
        "the reason or message is too long",
        Code.TOO_LARGE,
        why=f"it has {length} bytes, and at most 500 are allowed",
        fix="say it in a sentence, and the rest on your homepage",
    )
