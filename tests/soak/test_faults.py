"""Faults below a node, one of each sort: tests/soak/faults.py does all of them, again and again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

SCRIPT = Path(__file__).resolve().with_name("faults.py")


@pytest.mark.parametrize(
    "kinds",
    [
        ("sqlite-full", "sqlite-read-only", "sqlite-locked", "clock-ahead", "clock-behind"),
        ("postgres-immediate", "postgres-read-only", "standby-stopped", "standby-cut"),
    ],
    ids="+".join,
)
def test_a_node_says_what_it_lacks_and_goes_on_by_itself(kinds: tuple[str, ...]) -> None:
    chosen = [word for kind in kinds for word in ("--kind", kind)]
    command = [sys.executable, str(SCRIPT), str(len(kinds)), "--hold", "6", *chosen]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    said = f"{done.stdout}\n{done.stderr[-3000:]}"
    assert done.stdout.splitlines()[-1:] == [f"{len(kinds)} passed, 0 failed"], said
    assert done.returncode == 0, said
