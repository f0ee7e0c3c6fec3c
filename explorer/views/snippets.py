"""Commands and settings that a reader copies: to install a release, and to check it."""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from capdex.uri import CapabilityURI

# The hosts of `capdex add-to`, as they call themselves.
HOSTS: Final = {
    "claude": "Claude Code",
    "cursor": "Cursor",
    "vscode": "VS Code",
    "zed": "Zed",
    "codex": "Codex",
    "gemini": "Gemini CLI",
}


class Snippet(NamedTuple):
    """A text to copy, with what it is for."""

    title: str
    text: str
    note: str = ""


def install_snippets(uri: CapabilityURI, base: str) -> list[dict[str, str]]:
    """Return how to use a release: by the command line, and from each agent host."""
    exact = f"{uri.name}@{uri.selector}"
    found = [
        Snippet(
            "Command line",
            f"capdex install {exact}",
            "Verifies the package again, shows what it may do, and asks once.",
        ),
        Snippet("File", f"capdex get {exact}", "Downloads the file and verifies it on chain."),
    ]
    found += [
        Snippet(title, f"capdex add-to {host}\ncapdex install {exact}", "The first line once.")
        for host, title in HOSTS.items()
    ]
    settings = {"mcpServers": {"capdex": {"url": f"{base}/mcp"}}}
    found.append(
        Snippet(
            "Other MCP hosts",
            json.dumps(settings, indent=2),
            f"Then ask the agent for {uri}.",
        )
    )
    return [snippet._asdict() for snippet in found]


def checking_commands(release: dict[str, Any], base: str) -> list[dict[str, str]]:
    """Return commands by which a reader checks a release without this node's word for it."""
    cid, uri = release["ipfs_cid"], release["cap_uri"]
    found = [
        Snippet(
            "The bytes",
            f"curl -s '{base}/ipfs/{cid}?format=raw' | sha256sum",
            f"prints {release['sha256']}",
        ),
        Snippet(
            "The announcement and the proof",
            f"capdex resolve {uri} --proof --trust-rpc https://YOUR-ENDPOINT",
            "proves the release from the registry's storage, by a block hash of your endpoint",
        ),
        Snippet(
            "The signature and everything else",
            f"capdex get {uri.rpartition(':')[2]}",
            "runs every check on this page again, on your machine",
        ),
    ]
    return [snippet._asdict() for snippet in found]
