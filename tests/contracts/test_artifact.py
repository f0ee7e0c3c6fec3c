"""The inputs beside the artifacts compile to them; `make artifacts` compares the sources."""

import json
import os
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
SOLC = REPOSITORY / "contracts" / "solc-wrap"


@pytest.fixture(autouse=True)
def compiler() -> None:
    if (REPOSITORY / "node_modules" / "solc").exists():
        return
    missing = "solc is not installed (npm ci), so the artifacts cannot be proven"
    if os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.mark.real
@pytest.mark.parametrize("name", ["CapabilityRegistry", "CapabilityVotes"])
def test_who_compiles_the_verification_input_gets_the_bytecode(name: str) -> None:
    abi = REPOSITORY / "capdex" / "abi"
    given = (abi / f"{name}.input.json").read_text("utf-8")
    done = subprocess.run(
        [str(SOLC), "--standard-json"], input=given, capture_output=True, text=True, check=True
    )
    compiled = json.loads(done.stdout)["contracts"][f"src/{name}.sol"][name]
    artifact = json.loads((abi / f"{name}.json").read_text("utf-8"))
    assert "0x" + compiled["evm"]["bytecode"]["object"] == artifact["bytecode"]
    assert compiled["abi"] == artifact["abi"]
