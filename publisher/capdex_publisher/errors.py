"""Errors of the registry's rules: raised by plans before gas is paid, and for reverts."""

from __future__ import annotations

from capdex.errors import Code, InvalidInput, Refused


def name_taken(name: str, taken_by: str, owner: str = "", account: str = "<you>") -> Refused:
    """Return the error for a name that another account owns, or that looks like a name in use.

    Without `owner`, the name in use was given up, or nobody has looked whose it is.
    """
    if name == taken_by:
        message = f'"{name}" belongs to another account'
        why = "a name belongs to the account that claimed it, or that it was given to"
    else:
        message = f'"{name}" looks the same as "{taken_by}"'
        why = 'names are unique after 0→o, 1→l, i→l and without "-"'
    owned = f" (owner {owner})" if owner else ""
    fix = "pick another name"
    if owner == account:
        fix += f", or publish under {taken_by}, which is yours"
    elif owner:
        command = f"capdex maintainer add {taken_by} {account}"
        fix += f", or publish under {taken_by} after its owner ran: {command}"
    return Refused(message + owned, Code.NAME_TAKEN, why=why, fix=fix)


def name_reserved(name: str) -> Refused:
    """Return the error for a name that looks like a reserved word."""
    return Refused(
        f'"{name}" is reserved',
        Code.NAME_RESERVED,
        why="it looks like a word of the protocol, or one that would mislead people",
        fix="pick another name",
    )


def renounced(name: str) -> Refused:
    """Return the error for claiming a name that was given up for good."""
    return Refused(
        f'"{name}" was given up by its owner',
        Code.NAME_TAKEN,
        why="a renounced name can never be claimed again, and nothing of it changes any more",
        fix="pick another name",
    )


def given_up(name: str) -> Refused:
    """Return the error for changing a name that was given up for good."""
    return Refused(
        f'"{name}" was given up by its owner',
        Code.NOT_OWNER,
        why="a renounced name cannot be changed, and no release can be published under it",
        fix="publish under another name",
    )


def not_owner(name: str, caller: str, owner: str = "") -> Refused:
    """Return the error for an account that is not the owner of a name."""
    owned = f"; it is {owner}" if owner else ""
    return Refused(
        f'"{name}" does not belong to {caller}',
        Code.NOT_OWNER,
        why=f"only its owner may do this{owned}",
        fix="use the owner's account (--keystore or --signer), or ask the owner to do it",
    )


def not_maintainer(name: str, caller: str, owner: str = "") -> Refused:
    """Return the error for an account that neither owns nor maintains a name."""
    owned = f" ({owner})" if owner else ""
    return Refused(
        f'{caller} neither owns nor maintains "{name}"',
        Code.NOT_OWNER,
        why=f"only its owner{owned} and its maintainers publish and change its releases",
        fix=f"ask the owner to run: capdex maintainer add {name} {caller}",
    )


def no_offer(name: str, caller: str, pending: str = "") -> Refused:
    """Return the error for accepting a name that is not on offer to the account."""
    offered = f"it is on offer to {pending}" if pending else "it is not on offer"
    return Refused(
        f'"{name}" is not on offer to {caller}',
        Code.NOT_OWNER,
        why=f"{offered}; only the account that a name is offered to can accept it",
        fix=f"ask the owner to run: capdex transfer offer {name} {caller}",
    )


def invalid_recipient(name: str, recipient: str) -> InvalidInput:
    """Return the error for a recipient that is the owner."""
    return InvalidInput(
        f'"{name}" cannot be given to {recipient}, who owns it',
        why="an offer goes to another account, and an owner needs not be a maintainer",
        fix="name another account",
    )


def no_such_release(name: str, semver: str) -> InvalidInput:
    """Return the error for a release that does not exist."""
    return InvalidInput(
        f"{name} has no release {semver}",
        Code.NOT_FOUND,
        fix=f"list its releases: capdex show {name}",
    )


def no_such_name(name: str) -> InvalidInput:
    """Return the error for a name that was never claimed."""
    return InvalidInput(
        f'the name "{name}" is not claimed', Code.NOT_FOUND, fix="check how it is written"
    )


def version_exists(name: str, semver: str, sha256: str = "") -> InvalidInput:
    """Return the error for a version that is on chain with other bytes."""
    return InvalidInput(
        f"{name} {semver} is published already, with other bytes",
        Code.VERSION_EXISTS,
        why=f"the registry holds sha256 {sha256}" if sha256 else "a version is never used twice",
        fix="raise the version in metadata.id, sign again and publish that",
    )


def not_signed(publisher: str) -> Refused:
    """Return the error for a signature that an account has not made or does not accept."""
    return Refused(
        f"the signature is not one of {publisher} over this publication",
        Code.PERMISSION_DENIED,
        why="the account, the package, the chain, the registry, the number or the deadline differs;"
        " or the account has code (EIP-7702: also that of a key), which does not accept it",
        fix="sign again (capdex sponsor sign) with the publishing account, without code if by key",
    )
