import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
FORGE = REPOSITORY / "node_modules" / ".bin" / "forge"


@pytest.mark.real
def test_checked_in_artifacts_are_what_the_sources_compile_to() -> None:
    if not FORGE.exists():
        missing = "forge is not installed (npm ci), so the artifacts cannot be proven"
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    check = [sys.executable, str(REPOSITORY / "contracts" / "build.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
