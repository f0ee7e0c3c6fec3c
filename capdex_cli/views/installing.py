"""Installation on a terminal: the installer of this user, its questions, and what it did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any

import click

from capdex.errors import CapdexError, Code, Refused
from capdex.json import Json
from capdex_cli.config.settings import user_directories
from capdex_cli.terminal.app import App
from capdex_cli.terminal.prompt import NOTHING_SENT, confirm, interruptible
from capdex_cli.terminal.text import safe
from capdex_router.home.config import Config, NodeAddress

if TYPE_CHECKING:
    from capdex_router.agent import Agent
    from capdex_router.home.directory import Home
    from capdex_router.install.installer import Installer
    from capdex_router.install.outcome import InstallOutcome
    from capdex_router.policy.proposal import Proposal


class Terminal:
    """Asks on the terminal; `--yes` agrees, and what is agreed to is shown nevertheless."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def ask(self, proposal: Proposal) -> bool:
        """Show a proposal whole; return the answer, or raise Refused if nobody can give one."""
        show_proposal(self._app, proposal)
        if not self._app.options.yes and not self._app.may_ask:
            raise Refused(
                f"{proposal.summary} nobody can be asked here",
                Code.NO_CONSENT,
                why="stdin or stderr is not a terminal, or CI or --no-input is set",
                fix="run the same command in a terminal, or add --yes",
                details=proposal.to_json(),
            )
        try:
            confirm(self._app, "Agree?")
        except Refused:
            return False
        except click.Abort as error:  # Ctrl-C or Ctrl-D; Click's own is an error to the router
            raise KeyboardInterrupt(*error.args) from None
        return True


def show_proposal(app: App, proposal: Proposal) -> None:
    """Show a question whole."""
    from capdex_router.policy.consent import text

    for line in text(proposal).splitlines():
        app.output.say(safe(line))


def router_home() -> Home:
    """Return the data directory of this user's router."""
    from capdex_router.home.directory import Home

    return Home.open(user_directories().data / "router")


def router_config(app: App) -> Config:
    """Return the chosen network as the router needs it; without one nothing can be looked up."""
    network = app.settings.network
    if network is None or not network.mcp_url:
        return Config()
    first = NodeAddress(network.mcp_url, network.gateway_url)
    more = [url.rstrip("/") for url in network.nodes.replace(",", " ").split()]
    others = [NodeAddress(f"{url}/mcp", url) for url in more]
    return Config(
        nodes=tuple(dict.fromkeys((first, *others))),
        chain_id=network.chain_id,
        registry=network.address("registry") if network.registry else None,
        rpc_url=network.rpc_url,
        trust_rpc_url=network.trust_rpc_url,
    )


def open_installer(app: App) -> AbstractContextManager[Installer]:
    """Open the installer of this user for the chosen network."""
    from capdex_router import open_installer

    return open_installer(router_home(), router_config(app))


@asynccontextmanager
async def open_agent(app: App, **wiring: Any) -> AsyncIterator[Agent]:
    """Open the runtime of this user; `wiring` and errors are those of `router.open_agent`."""
    from capdex_router import open_agent

    with open_installer(app) as installer:
        async with open_agent(router_home(), installer, **wiring) as agent:
            yield agent


def outcome_json(outcome: InstallOutcome) -> Json:
    """Return what became of a capability as JSON."""
    fields: Json = {"name": outcome.name, "status": outcome.status}
    if outcome.entry is not None:
        fields |= outcome.entry.to_json()
    if outcome.old is not None:
        fields["was"] = outcome.old.version
    if outcome.plan is not None:
        fields["changes"] = [change.to_json() for change in outcome.plan.changes]
        fields["widened"] = list(outcome.plan.widened)
        fields["warnings"] = list(outcome.plan.release.warnings)
        fields["proven"] = outcome.plan.release.proven
        fields["proposal"] = outcome.plan.proposal().to_json()
    if outcome.error is not None:
        fields |= {"verdict": None, "error": outcome.error.to_json()}
    return fields


def outcome_row(app: App, outcome: InstallOutcome) -> tuple[str, ...]:
    """Return what became of a capability as a row."""
    out = app.output.out
    if outcome.error is not None:
        return (out.mark("fail"), safe(outcome.name), "", safe(outcome.error.line))
    version = outcome.entry.version if outcome.entry is not None else ""
    old = outcome.old and outcome.old.version
    was = f", before {old}" if old and old != version else ""
    kind = "plan" if outcome.status == "unchanged" else "ok"
    pinned = f": {safe(outcome.pinned)}" if outcome.pinned else ""
    return (out.mark(kind), safe(outcome.name), safe(version), f"{outcome.status}{was}{pinned}")


def chosen_candidate(app: App, error: CapdexError) -> str | None:
    """Ask which of the candidates of an AMBIGUOUS error is meant; None if nobody can be asked."""
    candidates = (error.details or {}).get("candidates")
    if error.code is not Code.AMBIGUOUS or not isinstance(candidates, list):
        return None
    for number, hit in enumerate(candidates, 1):
        app.output.say(f"  {number}  {safe(hit['name'])}  {safe(hit['summary'] or hit['title'])}")
    if app.options.yes or not app.may_ask:
        return None
    with interruptible(NOTHING_SENT):
        number = click.prompt("Which one?", type=click.IntRange(1, len(candidates)), err=True)
    return str(candidates[number - 1]["name"])
