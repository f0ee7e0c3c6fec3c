"""The action `manage`: packages installed, upgraded and removed for an agent, with consent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from capdex.errors import Unavailable
from capdex.manifest.urls import is_loopback
from capdex.uri import PREFIX
from capdex_router.install.installer import Installer
from capdex_router.install.outcome import InstallOutcome
from capdex_router.install.resolve import NodeHit, search
from capdex_router.install.wish import choose
from capdex_router.policy.consent import Asker, agree, clean
from capdex_router.policy.proposal import Proposal
from capdex_router.policy.quoting import quoted

TOOLS_SHOWN: Final = 8
NO_NODE: Final = "no node was asked: none is configured; a person can set CAPDEX_NODE_URL"


class Packages:
    """Packages of an installer, and those of the registry."""

    def __init__(self, installer: Installer) -> None:
        self._installer = installer

    @property
    def nodes_are_here(self) -> bool:
        """True if every node that may be asked is on this machine, so no word leaves it."""
        nodes = self._installer.config.nodes
        return bool(nodes) and all(is_loopback(urlsplit(x.mcp_url).hostname or "") for x in nodes)

    async def search(self, want: str, limit: int) -> tuple[Sequence[NodeHit], str]:
        """Return packages of the registry for a wish, and a line that says which nodes were asked.

        A node that does not answer is no error: what is installed is found without it.
        """
        asked: list[str] = []

        def audit(event: str, **fields: Any) -> None:
            self._installer.audit.write(event, **fields)
            asked.append(urlsplit(fields["node"]).netloc.rpartition("@")[2])

        try:
            hits = await search(want, limit, self._installer.config, audit)
        except Unavailable as error:
            why = f"{error.line}; {error.fix}"
            return [], clean(f"asked without an answer: {', '.join(asked)}: {why}")
        return hits, f"asked {', '.join(asked)}" if asked else NO_NODE

    async def act(self, action: str, target: str, asker: Asker) -> str:
        """Install, upgrade or remove; return what was done, as text."""
        if action == "upgrade":
            return await self._upgrade(target, asker)
        if action == "remove":
            return await self._remove(target, asker)
        installer = self._installer
        uri = await choose(target, installer.config, installer.audit.write)
        return _said(await installer.install(uri, asker), leads_on=True)

    async def _upgrade(self, name: str, asker: Asker) -> str:
        (outcome,) = await self._installer.upgrades([name])
        if outcome.error is not None:
            raise outcome.error
        if outcome.plan is None or outcome.status == "unchanged":
            return _said(outcome)
        return _said(await self._installer.carry_out(outcome.plan, asker))

    async def _remove(self, name: str, asker: Asker) -> str:
        # An agent that a hostile page talks to must not be able to disarm its user.
        entry = self._installer.entry(name)
        files = [f"its files in {quoted(x)} go, edited ones stay" for x in entry.folders]
        proposal = Proposal(
            "remove",
            f"Remove {entry.name} {entry.version}?",
            f"{PREFIX}{entry.name}",
            entry.version,
            entry.sha256,
            ("capdex", "remove", entry.name),
            facts=("its grants go; what it stored stays", *files),
        )
        await agree(proposal, asker, self._installer.audit.write)
        self._installer.remove([entry.name], entry)
        return f"removed {entry.name} {entry.version}"


def next_calls(names: Sequence[str]) -> str:
    """Return the line that leads a model from what is new here to its tools."""
    more = f" and {len(names) - TOOLS_SHOWN} more" if len(names) > TOOLS_SHOWN else ""
    return f"describe, then call: {', '.join(names[:TOOLS_SHOWN])}{more}"


def _said(outcome: InstallOutcome, *, leads_on: bool = False) -> str:
    version = "" if outcome.entry is None else f" {outcome.entry.version}"
    replaced = outcome.status in ("upgraded", "downgraded")
    was = f", before {outcome.old.version}" if outcome.old and replaced else ""
    warnings = outcome.plan.release.warnings if outcome.plan is not None else ()
    lines = [f"{outcome.name}{version}: {outcome.status}{was}"]
    if outcome.pinned:
        lines.append(outcome.pinned)
    if outcome.plan is not None and (leads_on or outcome.status != "unchanged"):
        names = [f"{outcome.name}#{tool.name}" for tool in outcome.plan.package.manifest.tools]
        lines.append(next_calls(names or [outcome.name]))
    return "\n".join([*lines, *(f"warning: {clean(warning)}" for warning in warnings)])
