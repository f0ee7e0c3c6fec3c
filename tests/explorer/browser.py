"""Chromium, driven by Playwright, with everything noted that a page must not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Locator, Page, ViewportSize, sync_playwright

REPOSITORY = Path(__file__).resolve().parents[2]
AXE = REPOSITORY / "node_modules" / "axe-core" / "axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
_SHIFT = """() => new Promise((resolve) => {
  let sum = 0;
  const seen = (list) => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) sum += one.value;
  };
  new PerformanceObserver(seen).observe({ type: "layout-shift", buffered: true });
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => resolve(sum), 50)));
})"""
_REPORT = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`refused by the policy: ${event.violatedDirective} ${event.blockedURI}`));
"""


def find() -> str | None:
    """The path of a Chromium, None if this machine has none."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def launch(program: str) -> Iterator[Browser]:
    """Run a Chromium without windows."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*OPTIONS])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A page that is open, and what it did that no page may do."""

    page: Page
    base: str
    faults: list[str] = field(default_factory=list)

    def go(self, address: str) -> None:
        """Open an address of the node and wait until nothing is loaded any more."""
        self.page.goto(self.base + address, wait_until="load")

    def follow(self, what: Locator) -> None:
        """Click what opens another page, and wait until that one has been read to its end.

        A click alone ends when the first bytes of the next page have come.
        """
        what.click()
        self.page.wait_for_load_state("load")

    def axe(self) -> list[str]:
        """What axe-core finds; the policy would refuse a script element with it."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text("utf-8"))
        found = self.page.evaluate(
            "axe.run({resultTypes: ['violations'], rules: {'target-size': {enabled: true}}})"
        )
        return [
            f"{x['id']}: {node['html'][:200]} {node['failureSummary'][:300]}"
            for x in found["violations"]
            for node in x["nodes"]
        ]

    def shift(self) -> float:
        """What moved on the page without a person's doing, since it was opened."""
        return float(self.page.evaluate(_SHIFT))

    def overflow(self) -> int:
        """How many pixels of the page are beyond the window's right edge."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


@contextmanager
def visit(
    browser: Browser, base: str, *, width: int = 1400, script: bool = True
) -> Iterator[Visit]:
    """Open a window; errors of the console, dialogs and requests to others become faults."""
    size: ViewportSize = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, java_script_enabled=script)
    context.set_default_timeout(60_000)
    page = context.new_page()
    visited = Visit(page, base)
    own = urlsplit(base).netloc

    def requested(request: Any) -> None:
        if urlsplit(request.url).netloc != own and not request.url.startswith("data:"):
            visited.faults.append(f"asked {request.url}")

    def said(message: Any) -> None:
        # A page of an error is itself an answer with an error's status.
        if message.type in ("error", "warning") and "status of 4" not in message.text:
            visited.faults.append(f"{message.type}: {message.text}")

    def asked(dialog: Any) -> None:
        visited.faults.append(f"dialog {dialog.message}")
        dialog.dismiss()

    page.on("request", requested)
    page.on("console", said)
    page.on("pageerror", lambda error: visited.faults.append(f"exception: {error}"))
    page.on("dialog", asked)
    if script:
        page.add_init_script(_REPORT)
    try:
        yield visited
    finally:
        context.close()
