"""Decode the contracts' custom errors by selector and explain each as an error of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from capdex.encoding.contract_abi import by_selector
from capdex.encoding.contract_abi import decode as decode_abi
from capdex.encoding.hexadecimal import to_hex
from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.registry.state import ZERO_ADDRESS
from capdex_publisher import errors

UNKNOWN: Final = "unknown error"
_IMMATURE: Final = {"CommitmentMissing", "CommitmentTooYoung", "CommitmentExpired"}

Values = Mapping[str, Any]


def explain(data: object, words: str = "") -> CapdexError:
    """Return the error that revert data (0x hex) stands for; errors without words become REVERTED.

    `words` is the endpoint's message, shown for errors that our contracts do not have. `details`
    hold the contract's own error: `{error, values}`.
    """
    name, values = decode(data)
    shown = {key: _json(value) for key, value in values.items()}
    why = f"{name}({', '.join(f'{key}={value}' for key, value in shown.items())})"
    if name in _EXPLANATIONS:
        error = _EXPLANATIONS[name](values)
    elif name in _DONE:
        error = InvalidInput("there was nothing left to do", Code.ALREADY_DONE, why=why)
    else:
        why = words if name == UNKNOWN and words else why
        error = InvalidInput("the contract refused the transaction", Code.REVERTED, why=why)
    return error.with_details(error=name, values=shown)


def is_immature(error: CapdexError) -> bool:
    """Return True if a claim was refused because it has no commitment of the right age."""
    return (error.details or {}).get("error") in _IMMATURE


def decode(data: object) -> tuple[str, dict[str, Any]]:
    """Return the name of a custom error and its values; (UNKNOWN, …) for other data."""
    text = data if isinstance(data, str) else ""
    try:
        raw = bytes.fromhex(text.removeprefix("Reverted ").removeprefix("0x"))
        entry = by_selector("error")[raw[:4]]
        values = decode_abi(entry["inputs"], raw[4:])
    except (ValueError, KeyError):
        return UNKNOWN, {"data": text[:74]} if text else {}
    names = [parameter["name"] for parameter in entry["inputs"]]
    return entry["name"], dict(zip(names, values, strict=True))


def _claimed(v: Values) -> Refused:
    if v["owner"] == ZERO_ADDRESS:
        return errors.renounced(v["name"])
    return errors.name_taken(v["name"], v["name"], v["owner"])


def _not_reserved(v: Values) -> InvalidInput:
    return InvalidInput(
        "the name was not reserved, or too long ago, before it was claimed",
        Code.REVERTED,
        why=f"its commitment is 0x{v['commitment'].hex()}",
        fix="run the same command again: it reserves the name anew",
    )


# Errors that a race with another account or process can cause; the checks before a transaction is
# priced find all others.
_EXPLANATIONS: Final[dict[str, Callable[[Values], CapdexError]]] = {
    "NameTaken": lambda v: errors.name_taken(v["name"], v["takenBy"]),
    "NameReserved": lambda v: errors.name_reserved(v["name"]),
    "NameClaimed": _claimed,
    "NotOwner": lambda v: errors.not_owner(v["name"], v["caller"]),
    "NotMaintainer": lambda v: errors.not_maintainer(v["name"], v["caller"]),
    "NoOffer": lambda v: errors.no_offer(v["name"], v["caller"]),
    "CommitmentMissing": _not_reserved,
    "CommitmentExpired": _not_reserved,
    "CommitmentTooYoung": lambda v: Unavailable(
        "the name was reserved too short a time ago",
        Code.TIMEOUT,
        why="the time of the blocks counts",
        fix="run the same command again; where blocks are made for transactions alone, make one",
    ),
    "VersionAlreadyPublished": lambda v: errors.version_exists(v["name"], v["semver"]),
    "NoSuchRelease": lambda v: errors.no_such_release(v["name"], v["semver"]),
    "InvalidSignature": lambda v: errors.not_signed(v["publisher"]),
    "NoSuchName": lambda v: errors.no_such_name(v["name"]),
    "NoVotingPower": lambda v: Refused(
        f"a vote of {v['voter']} weighs nothing here",
        Code.PERMISSION_DENIED,
        why="votes are weighed by what an account held of a token at one time in the past",
        fix="vote with an account that held some (--keystore or --signer)",
    ),
}
_DONE: Final = {
    "MaintainerUnchanged",
    "CommitmentNotNeeded",
    "CommitmentExists",
    "AlreadyYanked",
    "NotYanked",
    "AlreadyDeprecated",
    "NotDeprecated",
    "VoteUnchanged",
}


def _json(value: object) -> str | int:
    if isinstance(value, bytes):
        return to_hex(value)
    return value if isinstance(value, int) else str(value)[:200]
