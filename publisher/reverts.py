"""The contract's custom errors, decoded by selector and told as errors of ours."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

from eth_abi.abi import decode as decode_abi
from eth_abi.exceptions import DecodingError

from capdex.errors import CapdexError, Code, InvalidInput, Refused
from capdex.keccak import keccak

UNKNOWN: Final = "unknown error"


@cache
def artifact() -> dict[str, Any]:
    """The checked-in contract: `abi` and `bytecode` (0x hex) among its keys."""
    text = files("capdex").joinpath("abi/CapabilityRegistry.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def explain(data: object, words: str = "") -> CapdexError:
    """The error that revert data (0x hex) stands for; anything unknown becomes REVERTED.

    `words` are the endpoint's, for refusals that are none of the registry's.
    """
    name, values = decode(data)
    said = {key: _json(value) for key, value in values.items()}
    match name:
        case "NameTaken":
            return name_taken(values["name"], values["takenBy"])
        case "NotOwner" | "NotMaintainer":
            return not_owner(values["name"], values["caller"])
        case "VersionAlreadyPublished":
            return version_exists(values["name"], values["semver"])
        case "NoSuchRelease":
            return InvalidInput(
                f"{values['name']} has no release {values['semver']}",
                Code.NOT_FOUND,
                fix="check the name and the version",
            )
        case "AlreadyYanked" | "NotYanked":
            state = "yanked already" if name == "AlreadyYanked" else "not yanked"
            return InvalidInput(
                f"{values['name']} {values['semver']} is {state}", Code.ALREADY_DONE
            )
    why = f"{name}({', '.join(f'{key}={value}' for key, value in said.items())})"
    if name == UNKNOWN and words:
        why = words
    return InvalidInput(
        "the registry refused the transaction",
        Code.REVERTED,
        why=why,
        details={"error": name, "values": said},
    )


def decode(data: object) -> tuple[str, dict[str, Any]]:
    """The name of a custom error and its values; (UNKNOWN, …) for other data."""
    text = data if isinstance(data, str) else ""
    try:
        raw = bytes.fromhex(text.removeprefix("0x"))
        name, inputs = _selectors()[raw[:4]]
        values = decode_abi([i["type"] for i in inputs], raw[4:])
    except (ValueError, KeyError, DecodingError, OverflowError):
        return UNKNOWN, {"data": text[:74]} if text else {}
    return name, {i["name"]: value for i, value in zip(inputs, values, strict=True)}


def name_taken(name: str, taken_by: str, owner: str = "") -> Refused:
    """A name that cannot be claimed: another account owns it, or a name that looks like it."""
    if name == taken_by:
        message = f'"{name}" belongs to another account'
        why = "a name belongs to the account that first published it"
    else:
        message = f'"{name}" looks the same as "{taken_by}"'
        why = 'names are unique after 0→o, 1→l, i→l and without "-"'
    owned = f" (owner {owner})" if owner else ""
    return Refused(message + owned, Code.NAME_TAKEN, why=why, fix="pick another name")


def not_owner(name: str, caller: str, owner: str = "") -> Refused:
    """An account that tried to change what is not its own."""
    owned = f"; its owner is {owner}" if owner else ""
    return Refused(
        f'"{name}" does not belong to {caller}',
        Code.NOT_OWNER,
        why=f"only the owner of a name may change its releases{owned}",
        fix="use the owner's key file (--keystore)",
    )


def version_exists(name: str, semver: str, sha256: str = "") -> InvalidInput:
    """A version that stands on chain with other bytes."""
    return InvalidInput(
        f"{name} {semver} is published already, with other bytes",
        Code.VERSION_EXISTS,
        why=f"the registry holds sha256 {sha256}" if sha256 else "a version is never used twice",
        fix="raise the version in metadata.id, sign again and publish that",
    )


@cache
def _selectors() -> dict[bytes, tuple[str, list[dict[str, str]]]]:
    found = {}
    for entry in artifact()["abi"]:
        if entry["type"] == "error":
            signature = f"{entry['name']}({','.join(i['type'] for i in entry['inputs'])})"
            found[keccak(signature.encode("ascii"))[:4]] = (entry["name"], entry["inputs"])
    return found


def _json(value: Any) -> str | int:
    if isinstance(value, bytes):
        return "0x" + value.hex()
    return value if isinstance(value, int) else str(value)[:200]
