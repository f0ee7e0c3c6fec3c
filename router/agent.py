"""The agent's side of one user, opened: what is installed, mounted and learned, and its actions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from router.bindings.build import moving
from router.bindings.egress import Egress
from router.faces.actions import Actions
from router.faces.manage import Packages
from router.home.directory import Home
from router.install.installer import Installer
from router.policy.secrets import Secrets
from router.runtime.installed.source import packages
from router.runtime.opened import Mounts, Runtime, open_grants, opened
from router.runtime.session import Session


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
    mounts: Mounts | None = None,
    egress: Egress | None = None,
    work: Path = Path(),
    at: Mapping[str, str] | None = None,
) -> AsyncIterator[Agent]:
    """Open the runtime of a user, and close it at the end.

    With an installer an agent may ask for packages; `work` is the directory that learned programs
    see, `at` that of `router.bindings.build.Wiring`. Raises as `router.runtime.opened.opened`.
    """
    secrets = Secrets.of(home.path / "secrets.json")
    async with AsyncExitStack() as stack:
        source = await stack.enter_async_context(
            packages(home, open_grants(home.path), secrets, egress or moving(at or {}), at)
        )
        runtime = await stack.enter_async_context(
            opened(home.path, [source], mounts=mounts, work=work, hidden=secrets)
        )
        actions = Actions(
            runtime.catalog,
            runtime.search,
            runtime.invoker,
            runtime.results,
            Session(runtime.catalog),
            Packages(installer) if installer is not None else None,
            runtime.intents,
            runtime.learning,
            runtime.servers,
        )
        yield Agent(runtime, actions)
