"""Run every benchmark, one after the other: `python -m benchmarks`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Each script in a process of its own; 1 if any of them fails."""
    failed = False
    for script in sorted(HERE.glob("[a-z]*.py")):
        print(f"\n# {script.name}", flush=True)
        done = subprocess.run([sys.executable, str(script)], cwd=HERE.parent, check=False)
        failed = failed or done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
