"""python docs/images/make.py: take the README's pictures of pages, from a network of the examples.

It starts `capdex up` in a folder of its own, looks at two pages with Chromium, and writes
`search.png` and `provenance.png` beside this file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))
from tests.explorer.browser import find, launch, visit  # noqa: E402

WIDTH = 1060
MAX_BYTES = 200_000  # of both pictures: the README must load quickly
START_S = 120.0


def main() -> None:
    program = find()
    if program is None:
        sys.exit("Chromium is missing: make chromium")
    with tempfile.TemporaryDirectory(prefix="pictures-") as scratch:
        folder = Path(scratch)
        command = [sys.executable, "-m", "capdex", "up", "--port", "0", "--rpc-port", "0"]
        examples = ["--examples", str(ROOT / "examples")]
        network = subprocess.Popen([*command, *examples], cwd=folder, stdout=subprocess.DEVNULL)
        try:
            announced = folder / ".capdex" / "up.json"
            deadline = time.monotonic() + START_S
            while not announced.exists():
                if network.poll() is not None or time.monotonic() > deadline:
                    sys.exit("capdex up was never ready")
                time.sleep(0.1)
            take(program, json.loads(announced.read_text())["http_url"])
        finally:
            network.terminate()
            network.wait()
    size = sum(path.stat().st_size for path in HERE.glob("*.png"))
    print(f"{size} bytes")
    if size > MAX_BYTES:
        sys.exit(f"the pictures have more than {MAX_BYTES} bytes")


def take(program: str, base: str) -> None:
    """Take both pictures from a node."""
    with launch(program) as browser, visit(browser, base, width=WIDTH) as seen:
        deadline = time.monotonic() + START_S
        while True:  # meaning comes a little later than words
            seen.go("/search?q=what+is+the+weather+in+Oslo+tomorrow")
            if seen.page.get_by_text("in words and in meaning").count():
                break
            if time.monotonic() > deadline:
                sys.exit("the search by meaning was never ready")
        seen.page.set_viewport_size({"width": WIDTH, "height": 560})
        seen.page.screenshot(path=HERE / "search.png")
        seen.go("/c/city-weather?proof")
        seen.page.set_viewport_size({"width": WIDTH, "height": 620})
        part = seen.page.locator("section[aria-labelledby=provenance]")
        part.scroll_into_view_if_needed()
        part.screenshot(path=HERE / "provenance.png")


if __name__ == "__main__":
    main()
