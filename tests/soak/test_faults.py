"""Faults below a node: tests/soak/faults.py does these and others, again and again.

`make soak KIND=faults` alone sets the clock back, which test_health and test_clock_change do to the
parts, and cuts the writer's session, which test_roles and test_store_lock do.
"""

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
        ("sqlite-full", "sqlite-read-only", "sqlite-locked", "clock-ahead"),
        ("postgres-immediate", "postgres-read-only", "standby-stopped"),
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
