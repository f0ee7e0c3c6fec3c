"""Requests made from the OpenAPI document, right and wrong ones, against a running node.

`make soak KIND=openapi` makes 10 000 of them (COUNT in the environment: how many at least).
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

from capdex_service.http.openapi import PATH

# Read before fixtures clean the environment.
COUNT, SEED = int(os.environ.get("COUNT", "150")), os.environ.get("SEED", "1")
CONFIG = Path(__file__).with_name("schemathesis.toml")
OPERATIONS = 10  # without the stream, which does not end


async def test_no_request_meets_a_fault_or_breaks_the_document(
    tools_url: str, tmp_path: Path
) -> None:
    run = await asyncio.create_subprocess_exec(
        *(str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(CONFIG)),
        *("run", f"{tools_url}{PATH}", "--exclude-path", "/v1/changes/stream"),
        *("--max-examples", str(-(-COUNT // OPERATIONS)), "--seed", SEED),
        *("--checks", "all", "--phases", "examples,coverage,fuzzing", "--continue-on-failure"),
        *("--generation-database", "none", "--suppress-health-check", "all"),
        *("--warnings", "off", "--no-color"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=tmp_path,
    )
    output = (await run.communicate())[0].decode()
    print(output[-8000:])  # noqa: T201 - the soak shows it
    assert run.returncode == 0
    cases = re.search(r"([0-9]+) generated", output.replace(",", ""))
    assert cases is not None
    assert int(cases[1]) >= COUNT
