"""Decode the contracts' custom errors by selector and explain each as an error of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from capdex.encoding.contract_abi import CONTRACTS, Parameters, artifact, selector
from capdex.encoding.contract_abi import decode as decode_abi
from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from publisher.errors import (
    NO_ADDRESS,
    invalid_recipient,
    name_reserved,
    name_taken,
    no_offer,
    no_such_name,
    no_such_release,
    not_maintainer,
    not_owner,
    reason_too_long,
    renounced,
    version_exists,
)

UNKNOWN: Final = "unknown error"
Values = Mapping[str, Any]


def explain(data: object, words: str = "") -> CapdexError:
    """Return the error that revert data (0x hex) stands for; unknown data becomes REVERTED.

    `words` is the endpoint's message, shown for errors that our contracts do not have. `details`
    hold the contract's own error: `{error, values}`.
    """
    name, values = decode(data)
    shown = {key: _json(value) for key, value in values.items()}
    if name in _EXPLANATIONS:
        error = _EXPLANATIONS[name](values)
    else:
        why = f"{name}({', '.join(f'{key}={value}' for key, value in shown.items())})"
        if name == UNKNOWN and words:
            why = words
        error = InvalidInput("the contract refused the transaction", Code.REVERTED, why=why)
    error.details = (error.details or {}) | {"error": name, "values": shown}
    return error


def decode(data: object) -> tuple[str, dict[str, Any]]:
    """Return the name of a custom error and its values; (UNKNOWN, …) for other data."""
    text = data if isinstance(data, str) else ""
    try:
        raw = bytes.fromhex(text.removeprefix("Reverted ").removeprefix("0x"))
        name, inputs = _selectors()[raw[:4]]
        values = decode_abi(inputs, raw[4:])
    except (ValueError, KeyError):
        return UNKNOWN, {"data": text[:74]} if text else {}
    return name, {i["name"]: value for i, value in zip(inputs, values, strict=True)}


# ------------------------------------------------------------ the explanation of each error


def _done(message: str) -> InvalidInput:
    return InvalidInput(message, Code.ALREADY_DONE, why="nothing was left to do")


def _what(v: Values) -> str:
    return f"{v['name']} {v['semver']}" if v["semver"] else f'"{v["name"]}"'


def _bad_cid(why: str) -> InvalidInput:
    return InvalidInput(
        "the CID or the digest is not that of a package",
        why=why,
        fix="let `capdex cid FILE` make the CID",
    )


def _claimed(v: Values) -> Refused:
    if v["owner"] == NO_ADDRESS:
        return renounced(v["name"])
    return name_taken(v["name"], v["name"], v["owner"])


def _commitment(message: str, why: str) -> InvalidInput:
    return InvalidInput(
        message, Code.REVERTED, why=why, fix="run the same command again: it reserves the name anew"
    )


def _at(seconds: int) -> str:
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):
        return f"second {seconds}"


def _bytes32(value: bytes) -> str:
    return "0x" + value.hex()


_EXPLANATIONS: Final[dict[str, Callable[[Values], CapdexError]]] = {
    "InvalidName": lambda v: InvalidInput(
        f"the registry takes no name {v['name']!r}",
        why="a name is 2 to 64 of a-z, 0-9 and single inner hyphens, and starts with a letter",
        fix="pick a name like weather-reporter",
    ),
    "NameTaken": lambda v: name_taken(v["name"], v["takenBy"]),
    "NameReserved": lambda v: name_reserved(v["name"]),
    "NameClaimed": _claimed,
    "NotOwner": lambda v: not_owner(v["name"], v["caller"]),
    "NotMaintainer": lambda v: not_maintainer(v["name"], v["caller"]),
    "MaintainerUnchanged": lambda v: _done(
        f'the maintainers of "{v["name"]}" are as wanted: nothing changes for {v["account"]}'
    ),
    "InvalidRecipient": lambda v: invalid_recipient(v["name"], v["recipient"]),
    "NoOffer": lambda v: no_offer(v["name"], v["caller"]),
    "InvalidCommitmentAges": lambda v: InvalidInput(
        "the ages of commitments leave no time to reveal",
        why=f"the minimum is {v['minAge']} s, the maximum {v['maxAge']} s",
        fix="choose a maximum above the minimum, or a minimum of 0",
    ),
    "CommitmentNotNeeded": lambda v: _done("this registry takes claims without commitments"),
    "CommitmentExists": lambda v: _done(
        f"the commitment {_bytes32(v['commitment'])} counts until {_at(v['expiresAt'])}"
    ),
    "CommitmentMissing": lambda v: _commitment(
        "the name was not reserved before it was claimed",
        f"the registry knows no commitment {_bytes32(v['commitment'])}",
    ),
    "CommitmentTooYoung": lambda v: Unavailable(
        "the name was reserved too short a time ago",
        Code.TIMEOUT,
        why=f"it can be claimed from {_at(v['ripeAt'])} on, by the time of the blocks",
        fix="run the same command again: it waits as long as needed",
    ),
    "CommitmentExpired": lambda v: _commitment(
        "the name was reserved too long ago", f"that lapsed at {_at(v['expiredAt'])}"
    ),
    "InvalidSemVer": lambda v: InvalidInput(
        f"the registry takes no version {v['semver']!r}",
        why="a version is strict SemVer 2.0.0 without build metadata, 5 to 64 characters",
        fix="write a version like 1.2.3 or 2.0.0-rc.1",
    ),
    "CidMismatch": lambda v: _bad_cid(
        f"{v['cid']!r} is not the raw CIDv1 of sha256 {v['sha256'].hex()}"
    ),
    "ZeroDigest": lambda v: _bad_cid("the digest is zero, which no package has"),
    "VersionAlreadyPublished": lambda v: version_exists(v["name"], v["semver"]),
    "NoSuchRelease": lambda v: no_such_release(v["name"], v["semver"]),
    "AlreadyYanked": lambda v: _done(f"{_what(v)} is yanked already"),
    "NotYanked": lambda v: _done(f"{_what(v)} is not yanked"),
    "AlreadyDeprecated": lambda v: _done(f"{_what(v)} is deprecated already"),
    "NotDeprecated": lambda v: _done(f"{_what(v)} is not deprecated"),
    "ReasonTooLong": lambda v: reason_too_long(v["length"]),
    "SignatureExpired": lambda v: Refused(
        "the publisher's signature has expired",
        Code.PERMISSION_DENIED,
        why=f"it counted until {_at(v['deadline'])}",
        fix="ask the publisher to sign again, with a later deadline",
    ),
    "InvalidSignature": lambda v: Refused(
        f"{v['publisher']} did not sign this publication",
        Code.PERMISSION_DENIED,
        why=f"a signature counts once, for exactly these values and with nonce {v['nonce']}",
        fix="ask the publisher to sign again, for this registry, chain and nonce",
    ),
    "NoSuchName": lambda v: no_such_name(v["name"]),
    "InvalidVote": lambda v: InvalidInput(
        f"{v['vote']} is no vote", why="a vote is 1, -1 or 0", fix="say up, down or clear"
    ),
    "VoteUnchanged": lambda v: _done(f'the vote on "{v["name"]}" is as wanted'),
    "NoVotingPower": lambda v: Refused(
        f"a vote of {v['voter']} weighs nothing here",
        Code.PERMISSION_DENIED,
        why="votes are weighed by what an account held of a token at one time in the past",
        fix="vote with an account that held some (--keystore or --signer)",
    ),
    "InvalidTimepoint": lambda v: InvalidInput(
        f"votes cannot be weighed at the timepoint {v['timepoint']}",
        why="it has to be over by the token's clock; without a token there is none",
        fix="name an earlier --timepoint, or leave it out",
    ),
    # OpenZeppelin's, for texts given to the constructor: none of ours can be
    "InvalidShortString": lambda v: _ours("a short text"),
    "StringTooLong": lambda v: _ours(f"the text {v['str']!r}"),
}


def _ours(what: str) -> InvalidInput:
    return InvalidInput(
        f"the contract was built with {what} that does not fit",
        Code.REVERTED,
        why="the domain of signatures is at most 31 bytes",
        fix="deploy the contract that comes with capdex",
    )


@cache
def _selectors() -> dict[bytes, tuple[str, Parameters]]:
    entries = [entry for contract in CONTRACTS for entry in artifact(contract)["abi"]]
    return {selector(x): (x["name"], x["inputs"]) for x in entries if x["type"] == "error"}


def _json(value: Any) -> str | int:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return value if isinstance(value, int) else str(value)[:200]
