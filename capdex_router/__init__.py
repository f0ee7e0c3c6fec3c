"""The agent's side of capdex: find, verify, install, route to and invoke capabilities."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_router.agent import Agent, open_agent
    from capdex_router.home.config import Config, NodeAddress
    from capdex_router.home.directory import Home
    from capdex_router.install.installer import Installer
    from capdex_router.install.outcome import InstallOutcome
    from capdex_router.installer import open_installer
    from capdex_router.invoke.invoke import Caller
    from capdex_router.model.refs import InvokeResult
    from capdex_router.policy.consent import Asker, Refuse
    from capdex_router.policy.proposal import Proposal

__all__ = [
    "Agent",
    "Asker",
    "Caller",
    "Config",
    "Home",
    "InstallOutcome",
    "Installer",
    "InvokeResult",
    "NodeAddress",
    "Proposal",
    "Refuse",
    "open_agent",
    "open_installer",
]

if not TYPE_CHECKING:  # for a type checker a room has these names alone
    __getattr__ = door(__name__)
