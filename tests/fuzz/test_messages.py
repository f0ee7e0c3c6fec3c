"""Mutated JSON-RPC messages get typed answers only: a few here, 200 000 by `make soak KIND=mcp`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

SOAK = Path(__file__).with_name("soak.py")
COUNT = 500


def test_every_message_gets_a_typed_answer(tmp_path: Path) -> None:
    seed = Random().randrange(2**32)  # noqa: S311 - the output names it
    command = [sys.executable, str(SOAK), str(COUNT), "--seed", str(seed), "--blind"]
    done = subprocess.run(
        [*command, "--keep", str(tmp_path), "--targets", "messages"],
        capture_output=True,
        check=False,
        text=True,
    )
    said = done.stdout + done.stderr
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{COUNT} passed, 0 failed"), said
