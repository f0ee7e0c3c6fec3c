"""A whole runtime over a data directory: catalogue, pipeline, grants, audit, stored results."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcp.client.stdio import StdioServerParameters

from capdex_router.catalog.catalog import CapabilitySource, Catalog, Fixed
from capdex_router.catalog.mcp_mount import START_S, Mounted, mount_proposal
from capdex_router.catalog.search import Search
from capdex_router.catalog.skill_folder import skills
from capdex_router.commands.learning import Learning
from capdex_router.commands.source import LearnedTools
from capdex_router.commands.store import LearnedStore
from capdex_router.home.audit_log import AuditLog
from capdex_router.home.directory import Home
from capdex_router.invoke.invoke import Invoker
from capdex_router.invoke.results import Results
from capdex_router.invoke.validation import Validation
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.secrets import Secrets


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of a runtime that faces use."""

    catalog: Catalog
    search: Search
    invoker: Invoker
    results: Results
    grants: GrantFile
    learning: Learning
    learned: LearnedTools
    servers: Sequence[Mounted]


@asynccontextmanager
async def open_runtime(
    directory: Path,
    sources: Sequence[CapabilitySource] = (),
    *,
    servers: Mapping[str, StdioServerParameters] | None = None,
    folders: Sequence[Path] = (),
    work: Path = Path(),
    hidden: Secrets | None = None,
) -> AsyncIterator[Runtime]:
    """Open the runtime over a directory, which is for its user alone, and close it at the end.

    Beside the `sources` stand MCP servers by a name, and folders of Agent Skills. `work` is the
    directory that learned programs see.

    A server that does not start within START_S seconds has no tools yet. Raises UsageError for
    files that cannot be read.
    """
    async with AsyncExitStack() as stack:
        home = Home.open(directory)
        grants = GrantFile(home.grants)
        audit = stack.enter_context(AuditLog(home.audit))

        def noted(source: Mounted) -> None:
            # Who started the router named the server: nobody is asked, and it is on record.
            audit.write("mount", **mount_proposal(source).audited(), agreed=True)

        mounted = [
            await stack.enter_async_context(Mounted(name, server, noted))
            for name, server in (servers or {}).items()
        ]
        await asyncio.gather(*(server.awake(START_S) for server in mounted))
        read = [Fixed(skills(folder), domain="skills") for folder in folders]
        learning = Learning(LearnedStore(home.learned), grants=grants, audit=audit)
        learned = LearnedTools(learning, work=work, own=directory)
        catalog = Catalog([*sources, *mounted, *read, learned])
        invoker = Invoker(
            catalog,
            rights=grants,
            audit=audit,
            check=Validation().check,
            redact=hidden.redact if hidden is not None else lambda value: value,
            renew=learned.renew,
        )
        search, results = Search(catalog), Results(directory / "results")
        yield Runtime(catalog, search, invoker, results, grants, learning, learned, mounted)
