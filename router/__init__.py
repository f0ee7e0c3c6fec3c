"""The agent's side of capdex: find, verify, install, route to and invoke capabilities."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from router.agent import Agent, open_agent
    from router.home.config import Config, NodeAddress
    from router.home.directory import Home
    from router.install.installer import Installer, InstallOutcome
    from router.installer import open_installer
    from router.model.refs import InvokeResult
    from router.policy.consent import Asker, Refuse
    from router.policy.proposal import Proposal
    from router.runtime.invoke import Caller

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
    __getattr__ = door(
        __name__,
        {
            "router.agent": ["Agent", "open_agent"],
            "router.home.config": ["Config", "NodeAddress"],
            "router.home.directory": ["Home"],
            "router.install.installer": ["InstallOutcome", "Installer"],
            "router.installer": ["open_installer"],
            "router.model.refs": ["InvokeResult"],
            "router.policy.consent": ["Asker", "Refuse"],
            "router.policy.proposal": ["Proposal"],
            "router.runtime.invoke": ["Caller"],
        },
    )
