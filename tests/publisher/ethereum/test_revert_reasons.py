"""Every custom error of the contracts is told in our words, or by its name and values."""

from __future__ import annotations

import pytest
from eth_abi.abi import encode

from capdex.encoding.contract_abi import CONTRACTS, artifact
from capdex.encoding.keccak import keccak
from capdex.errors import CapdexError, Code, InvalidInput, Refused, Unavailable
from capdex.net.rpc.errors import RpcFault, refusal
from capdex_publisher.ethereum.revert_reasons import UNKNOWN, decode, explain, is_immature

OWNER = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
CALLER = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
SAMPLES = {
    "string": "weather",
    "address": CALLER,
    "bytes32": b"\x11" * 32,
    "uint256": 1_700_000_000,
    "int8": 2,
}
ERRORS = {
    entry["name"]: entry["inputs"]
    for contract in CONTRACTS
    for entry in artifact(contract)["abi"]
    if entry["type"] == "error"
}


def reverted(name, *values):
    """The revert data of an error; without values, of sample ones."""
    types = [i["type"] for i in ERRORS[name]]
    selector = keccak(f"{name}({','.join(types)})".encode())[:4]
    return "0x" + (selector + encode(types, values or [SAMPLES[t] for t in types])).hex()


@pytest.mark.parametrize("name", ERRORS)
def test_every_custom_error_is_explained_by_words_or_by_its_values(name):
    error = explain(reverted(name), "the endpoint's words")
    assert isinstance(error, CapdexError)
    assert error.details is not None
    assert error.details["error"] == name
    assert error.message
    if name in error.why:
        assert error.code in (Code.REVERTED, Code.ALREADY_DONE)
        assert error.details is not None
        assert all(f"{key}={value}" in error.why for key, value in error.details["values"].items())
    else:
        assert error.fix


@pytest.mark.parametrize(
    ("name", "family", "code"),
    [
        ("NameTaken", Refused, Code.NAME_TAKEN),
        ("NameClaimed", Refused, Code.NAME_TAKEN),
        ("NameReserved", Refused, Code.NAME_RESERVED),
        ("NotOwner", Refused, Code.NOT_OWNER),
        ("NotMaintainer", Refused, Code.NOT_OWNER),
        ("NoOffer", Refused, Code.NOT_OWNER),
        ("VersionAlreadyPublished", InvalidInput, Code.VERSION_EXISTS),
        ("NoSuchRelease", InvalidInput, Code.NOT_FOUND),
        ("NoSuchName", InvalidInput, Code.NOT_FOUND),
        ("CommitmentTooYoung", Unavailable, Code.TIMEOUT),
        ("CommitmentMissing", InvalidInput, Code.REVERTED),
        ("CommitmentExpired", InvalidInput, Code.REVERTED),
        ("InvalidSignature", Refused, Code.PERMISSION_DENIED),
        ("NoVotingPower", Refused, Code.PERMISSION_DENIED),
        *(
            (name, InvalidInput, Code.ALREADY_DONE)
            for name in (
                *("MaintainerUnchanged", "VoteUnchanged", "CommitmentExists"),
                *("AlreadyYanked", "NotYanked", "AlreadyDeprecated", "NotDeprecated"),
            )
        ),
    ],
)
def test_an_error_is_of_the_family_that_says_what_to_do(name, family, code):
    error = explain(reverted(name))
    assert (type(error), error.code) == (family, code)


def test_a_refusal_names_the_command_that_mends_it():
    error = explain(reverted("NotMaintainer", "weather", CALLER))
    assert f"capdex maintainer add weather {CALLER}" in error.fix
    error = explain(reverted("NoOffer", "weather", CALLER))
    assert f"capdex transfer offer weather {CALLER}" in error.fix


def test_a_name_that_was_given_up_is_not_said_to_have_an_owner():
    nobody = "0x" + "00" * 20
    assert "given up" in explain(reverted("NameClaimed", "weather", nobody)).message
    assert OWNER in explain(reverted("NameClaimed", "weather", OWNER)).message


def test_values_are_told_as_people_write_them():
    _, values = decode(reverted("NotOwner", "weather", CALLER))
    assert values["caller"] == CALLER
    assert str(2**255) in explain(reverted("SignatureExpired", 2**255)).why
    assert "semver=1.0.0" in explain(reverted("AlreadyDeprecated", "weather", "1.0.0")).why


def test_what_is_no_error_of_ours_keeps_the_endpoints_words():
    error = explain("0x08c379a0", "out of gas")
    assert (error.code, error.why) == (Code.REVERTED, "out of gas")
    assert decode("0x08c379a0")[0] == UNKNOWN


@pytest.mark.parametrize("wrap", [str, lambda x: {"message": "Error", "data": x}])
def test_a_claim_before_its_commitment_is_known_by_the_words_of_anvil_and_of_hardhat(wrap):
    data = reverted("CommitmentMissing")
    message = f"reverted with an unrecognized custom error (return data: {data})"
    error = refusal("here", {"code": -32603, "message": message, "data": wrap(data)})
    assert error.fault is RpcFault.REVERTED
    assert is_immature(explain(error.data, error.why))


def test_a_claim_that_comes_too_early_says_what_a_chain_without_new_blocks_needs():
    error = explain(reverted("CommitmentTooYoung"))
    assert error.code is Code.TIMEOUT
    assert "where blocks are made for transactions alone, make one" in error.fix
