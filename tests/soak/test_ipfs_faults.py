"""The soak of a gateway that misbehaves, in small: every fault at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("kind", ["mixed", "mixed+", "redirect"])
def test_no_fault_of_a_gateway_brings_in_a_wrong_package_or_loses_one(kind: str) -> None:
    command = [sys.executable, str(HERE / "ipfs.py"), "60", "--untimed", "--only", kind]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    said = f"{done.stdout}\n{done.stderr[-3000:]}"
    assert done.returncode == 0, said
    assert done.stdout.splitlines()[-1] == "60 passed, 0 failed", said
