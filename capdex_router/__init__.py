"""The agent's side of capdex: find, verify, install, route to and invoke capabilities."""

from typing import TYPE_CHECKING

from capdex.door import door

if TYPE_CHECKING:
    from capdex_router.agent import Agent as Agent
    from capdex_router.agent import open_agent as open_agent
    from capdex_router.home.config import Config as Config
    from capdex_router.home.config import NodeAddress as NodeAddress
    from capdex_router.home.directory import Home as Home
    from capdex_router.install.installer import Installer as Installer
    from capdex_router.install.outcome import InstallOutcome as InstallOutcome
    from capdex_router.installer import open_installer as open_installer
    from capdex_router.invoke.invoke import Caller as Caller
    from capdex_router.model.refs import InvokeResult as InvokeResult
    from capdex_router.policy.consent import Asker as Asker
    from capdex_router.policy.consent import Refuse as Refuse
    from capdex_router.policy.proposal import Proposal as Proposal
else:  # its names and `__all__`: the imports above
    __getattr__ = door(__name__)
