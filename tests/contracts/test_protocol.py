"""What the protocol's page says of the contracts is what their ABI says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs/protocol.md").read_text("utf-8")
P13 = PAGE[PAGE.index("## P13") : PAGE.index("### Events")]
CONTRACT, VOTES = P13.split("### Votes")


def abi_of(contract: str) -> list[dict[str, Any]]:
    artifact = json.loads((REPOSITORY / f"capdex/abi/{contract}.json").read_text("utf-8"))
    abi: list[dict[str, Any]] = artifact["abi"]
    return abi


def written(parameters: list[dict[str, Any]]) -> str:
    """Parameters as the page writes them: structs and contracts by name."""
    shown = []
    for one in parameters:
        internal = one["internalType"].split(".")[-1].removeprefix("struct ")
        kind = internal if one["type"].startswith("tuple") else one["type"]
        shown.append(f"{kind} {one['name']}".strip())
    return ", ".join(shown)


def signature(entry: dict[str, Any]) -> str:
    text = f"{entry['name']}({written(entry['inputs'])})"
    if entry["type"] == "error":
        return f"error {text}"
    if not entry["outputs"]:
        return text
    outputs = written(entry["outputs"])
    if len(entry["outputs"]) == 1:  # one value needs no name
        outputs = outputs.split(" ")[0]
    return f"{text} {entry['stateMutability']} returns ({outputs})"


@pytest.mark.parametrize(
    ("contract", "section"), [("CapabilityRegistry", CONTRACT), ("CapabilityVotes", VOTES)]
)
def test_every_function_and_error_is_listed_as_it_is(contract: str, section: str) -> None:
    lines = re.findall(r"^    (?!struct)(\S.*)", section, re.MULTILINE)
    listed = [re.match(r"(error )?\w+\(.*?\)( \w+ returns \(.*\))?", line) for line in lines]
    ours = (REPOSITORY / f"contracts/src/interfaces/I{contract}.sol").read_text("utf-8")
    expected = {
        signature(entry)
        for entry in abi_of(contract)
        if entry["type"] in ("function", "error") and re.search(rf"\b{entry['name']}\(", ours)
    }
    assert {found.group() for found in listed if found} == expected
    assert all(listed)


def test_what_comes_from_openzeppelin_is_not_listed_but_named() -> None:
    ours = {"CapabilityRegistry", "CapabilityVotes"}
    names = {e["name"] for c in ours for e in abi_of(c) if e["type"] in ("function", "error")}
    assert {name for name in names if f"{name}(" not in P13} == {
        "eip712Domain",
        "InvalidShortString",
        "StringTooLong",
    }


def test_the_structs_are_those_of_the_interface() -> None:
    source = (REPOSITORY / "contracts/src/interfaces/ICapabilityRegistry.sol").read_text("utf-8")
    for struct in re.findall(r"struct (\w+ {.*?})", source, re.DOTALL):
        assert f"struct {' '.join(struct.split())}" in P13
