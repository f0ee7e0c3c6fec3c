"""The script of docs/python-api.md, run as it stands beside a `capdex up`."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = (REPOSITORY / "docs" / "python-api.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)


@pytest.mark.real
def test_every_call_of_the_page_gives_what_it_says(examples_up: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(BLOCKS)],
        cwd=examples_up,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("did:nuwa:cap:egg-timer"))
    valid, *steps = lines[:start]
    published, got, check, failed, resolved, *releases, failures = lines[start : start + 10]
    followed, *asked, called = [x for x in lines[start + 10 :] if not x.startswith("20")]  # no log
    assert valid == "True unsigned 1"
    assert {"FileRead", "FileSigned", "PublishPlan"} <= set(steps)
    assert re.fullmatch(r"did:nuwa:cap:egg-timer@0\.1\.0 bafkrei\w{52} None", published)
    assert re.fullmatch(r"did:nuwa:cap:egg-timer@0\.1\.0 did:key:\S+ False", got)
    assert (check, failed) == ("binding", "UNVERIFIED")
    assert re.fullmatch(r"bafkrei\w{52} .* is the highest in \^1 of .*", resolved)
    assert releases == [
        "2.0.0-rc.1 verified False",
        "1.2.0 verified True",
        "1.1.0 verified False",
        "1.0.0 verified False",
    ]
    assert failures == "0"
    assert followed == "did:nuwa:cap:egg-timer@0.1.0 verified"
    assert len(asked) >= 1
    assert called.startswith("True {")
