"""The five actions of an agent over all that this user has installed, mounted and learned."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli.terminal.app import App
from cli.views.installing import open_installer, router_home

if TYPE_CHECKING:
    from router.bindings.egress import Egress
    from router.faces.actions import Actions
    from router.runtime.opened import Mounts, Runtime


@dataclass(frozen=True, slots=True)
class Agent:
    """The runtime of this user, and the actions of an agent over it."""

    runtime: Runtime
    actions: Actions


@asynccontextmanager
async def open_agent(
    app: App,
    *,
    mounts: Mounts | None = None,
    egress: Egress | None = None,
    work: Path = Path(),
    at: Mapping[str, str] | None = None,
) -> AsyncIterator[Agent]:
    """Open the runtime of this user, and close it at the end.

    `work` is the directory that learned programs see, `at` that of `router.bindings.build.Wiring`.
    Raises as `router.runtime.opened.opened`.
    """
    from router.bindings.build import moving
    from router.faces.actions import Actions
    from router.faces.manage import Packages
    from router.policy.secrets import Secrets
    from router.runtime.installed.source import packages
    from router.runtime.opened import open_grants, opened
    from router.runtime.session import Session

    home = router_home()
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
            Packages(stack.enter_context(open_installer(app))),
            runtime.intents,
            runtime.learning,
            runtime.servers,
        )
        yield Agent(runtime, actions)
