"""The agent's side of one user, opened: what is installed, mounted and learned, and its actions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp.client.stdio import StdioServerParameters

from capdex_router.bindings.build import moving
from capdex_router.bindings.egress import Egress
from capdex_router.catalog.installed import packages
from capdex_router.faces.actions import Actions
from capdex_router.faces.manage import Packages
from capdex_router.home.directory import Home
from capdex_router.install.installer import Installer
from capdex_router.invoke.validation import Validation
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.secrets import Secrets
from capdex_router.routing.session import Session
from capdex_router.runtime import Runtime, open_runtime


@dataclass(frozen=True, slots=True)
class Agent:
    """The runtime of a user, and the actions of an agent over it."""

    runtime: Runtime
    actions: Actions


@asynccontextmanager
async def open_agent(
    home: Home,
    installer: Installer | None = None,
    *,
    servers: Mapping[str, StdioServerParameters] | None = None,
    folders: Sequence[Path] = (),
    egress: Egress | None = None,
    work: Path = Path(),
    at: Mapping[str, str] | None = None,
) -> AsyncIterator[Agent]:
    """Open the runtime of a user, and close it at the end.

    With an installer an agent may ask for packages; `at` is that of `bindings.build.Wiring`, and
    `servers`, `folders` and `work` are those of `runtime.open_runtime`, which also says what it
    raises.
    """
    secrets, check = Secrets(home.secrets), Validation().check
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(
            packages(home, GrantFile(home.grants), secrets, egress or moving(at or {}), check, at)
        )
        runtime = await stack.enter_async_context(
            open_runtime(
                home.path, [source], servers=servers, folders=folders, work=work, hidden=secrets
            )
        )
        actions = Actions(
            runtime.catalog,
            runtime.search,
            runtime.invoker,
            runtime.results,
            Session(runtime.catalog),
            Packages(installer) if installer is not None else None,
            runtime.learned,
            runtime.servers,
        )
        yield Agent(runtime, actions)
