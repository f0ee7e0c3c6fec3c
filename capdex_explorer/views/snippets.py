"""Commands and settings that a reader copies: to install a release, and to check it."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from capdex.uri import CapabilityURI

# The hosts of `capdex add-to`, as they call themselves.
HOSTS: Final = {
    "cursor": "Cursor",
    "vscode": "VS Code",
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
}
SKILL_HOSTS: Final = {"vscode": "copilot"}  # as `capdex install --to` calls a host, if otherwise
_INSTALLED: Final = (
    "The first line once. The second one checks the package again, shows what it may do, and asks."
)
_WRITTEN: Final = "Then it writes the skill where this host looks for skills; nothing is run."


class Snippet(NamedTuple):
    """A text to copy, with what it is for; `link` opens a program that does it at a click."""

    title: str
    text: str
    note: str = ""
    link: str = ""


def connections(
    base: str, uri: CapabilityURI | None = None, *, skill: bool = False
) -> list[dict[str, str]]:
    """Return how each agent host is connected to this node, or gets a release by the router.

    A `skill` is written into the folder where a host looks for skills.
    """
    server = {"url": f"{base}/mcp"}
    settings = json.dumps({"mcpServers": {"capdex": server}}, indent=2)
    typed = {"type": "http"} | server
    links = {
        # https://cursor.com/docs/mcp/install-links
        "cursor": "cursor://anysphere.cursor-deeplink/mcp/install?name=capdex&config="
        + quote(b64encode(json.dumps(server).encode()).decode()),
        # https://code.visualstudio.com/api/extension-guides/ai/mcp
        "vscode": "vscode:mcp/install?" + quote(json.dumps({"name": "capdex"} | typed)),
    }
    commands = {
        "vscode": json.dumps({"servers": {"capdex": typed}}, indent=2),  # of its mcp.json
        "claude": f"claude mcp add --transport http capdex {base}/mcp",
        "codex": f"codex mcp add capdex --url {base}/mcp",
        "gemini": f"gemini mcp add --transport http capdex {base}/mcp",
    }
    exact = uri and f"capdex install {uri.name}@{uri.selector}"
    snippets = []
    for host, title in HOSTS.items():
        text, note = commands.get(host, settings), ""
        if skill and exact:
            text = f"{exact} --to {SKILL_HOSTS.get(host, host)}"
            note = f"Checks the package and its files, shows what it may do, and asks. {_WRITTEN}"
        elif exact:
            text, note = f"capdex add-to {host}\n{exact}", _INSTALLED
        snippets.append(Snippet(title, text, note, links.get(host, "")))
    then = f"Then ask the agent for {uri}." if uri else "For every host that speaks MCP over HTTP."
    snippets.append(Snippet("Other", settings, then))
    if exact and uri:
        file = f"capdex get {uri.name}@{uri.selector}"
        snippets.append(Snippet("File", file, "Downloads the file and checks it by the chain."))
    return [snippet._asdict() for snippet in snippets]


def checking_commands(release: dict[str, Any], base: str) -> list[dict[str, str]]:
    """Return commands by which a reader checks a release without this node's word for it."""
    cid, uri = release["ipfs_cid"], release["cap_uri"]
    snippets = [
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
    return [snippet._asdict() for snippet in snippets]
