"""`capdex version`: the versions to name in a bug report."""

from __future__ import annotations

import platform

from capdex import __version__
from cli.terminal.app import App
from cli.terminal.click_commands import command

PARTS = ("click", "aiohttp", "web3", "mcp", "sqlmodel", "ipfshttpclient", "py-multiformats")


@command("version", examples=["capdex version", "capdex version --json"])
def version_command(app: App) -> None:
    """Print the versions in use."""
    from importlib.metadata import PackageNotFoundError, version

    from cli.config.settings import REGISTRY, VOTES

    parts = {}
    for part in PARTS:
        try:
            parts[part] = version(part)
        except PackageNotFoundError:
            parts[part] = "missing"
    value = {
        "version": __version__,
        "python": platform.python_version(),
        "parts": parts,
        "contracts": {"CapabilityRegistry": REGISTRY, "CapabilityVotes": VOTES},
    }
    app.output.result(
        "version",
        value,
        human=lambda: [
            f"capdex {__version__}",
            *(f"  {name} {found}" for name, found in {"Python": value["python"], **parts}.items()),
        ],
        plain=[__version__],
    )
