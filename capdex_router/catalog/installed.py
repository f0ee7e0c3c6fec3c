"""The source of installed packages: what the lock file lists and a person agreed to here.

A start reads short forms that were derived when a package was verified, by its sha256. A package is
verified again from its bytes before one of its tools is loaded.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import structlog

from capdex.errors import CapdexError, Code, InvalidInput
from capdex.manifest.tools import BUILT_IN
from capdex.package import VerifiedPackage
from capdex.uri import PREFIX
from capdex_router.bindings.build import Wiring, executor
from capdex_router.bindings.egress import Egress
from capdex_router.bindings.mcp import McpServices
from capdex_router.bindings.pins import Pins
from capdex_router.catalog.catalog import Listed
from capdex_router.catalog.packages import Executors, offered, owner_of, skill, tool_of
from capdex_router.catalog.short_forms import ShortForms, decode, short
from capdex_router.home.directory import Home
from capdex_router.install.fetch import Cache, installed
from capdex_router.install.lock_store import LockStore
from capdex_router.install.lockfile import Locked
from capdex_router.model.capability import Capability, Check, Executor
from capdex_router.model.refs import CapabilityRef
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.proposal import INSTALL
from capdex_router.policy.secrets import Secrets
from capdex_router.state.store import ObjectStore
from capdex_router.state.strategies import model
from capdex_router.state.tools import StateTool

log = structlog.get_logger(part="router")


class Installed:
    """Capabilities of installed packages; `executors` gives what runs their tools."""

    def __init__(self, home: Home, rights: GrantFile, executors: Executors) -> None:
        self._store = LockStore(home.lock_file)
        self._cache = Cache(home.blocks)
        self._forms = ShortForms(home)
        self._rights = rights
        self._executors = executors
        self._agreed: frozenset[str] = frozenset()
        self._grants: object = None

    @property
    def revision(self) -> object:
        """The lock file's stamp, and what was agreed to; both change without a restart."""
        return self._store.stamp, self._agreed_to()

    def listed(self) -> Iterator[Listed]:
        """Yield skills and tools that verify, in short; raises UsageError for a damaged lock."""
        forms = self._forms.read()
        new: dict[str, tuple[Listed, ...]] = {}
        agreed = self._agreed_to()
        for entry in self._store.read().packages.values():
            if entry.sha256 not in agreed:
                continue
            listed = decode(forms.get(entry.sha256))
            if listed is None:
                listed = self._derive(entry)
                if listed:
                    new[entry.sha256] = listed
            yield from listed
        self._forms.add_all(new)

    def load(self, ref: CapabilityRef) -> Capability:
        """Return a skill or a tool of an installed package, which is verified again.

        Raises Unavailable if its bytes are missing, VerificationFailure or InvalidInput LOCK_DRIFT
        if they are not what the lock file says, UsageError if that cannot be read.
        """
        package_id, _, name = ref.capability_id.partition("#")
        entry = self._store.read().packages.get(package_id.removeprefix(PREFIX))
        if entry is not None and entry.version == ref.version:
            package = installed(entry, self._cache)
            if not name:
                return skill(package, self._cache.get)
            for tool in offered(package.manifest):
                if tool.name == name:
                    executor = self._executors(package, name)
                    return tool_of(package.manifest, owner_of(package), tool, executor)
        what = f"{ref.capability_id} {ref.version} is not installed any more"
        raise InvalidInput(what, Code.NOT_FOUND)

    def _agreed_to(self) -> frozenset[str]:
        grants = self._rights.read()
        if grants is not self._grants:  # read again only when its file changed
            self._agreed, self._grants = grants.digests(INSTALL, time.time()), grants
        return self._agreed

    def _derive(self, entry: Locked) -> tuple[Listed, ...]:
        try:
            return tuple(short(installed(entry, self._cache)))
        except CapdexError as error:
            log.warning("package left out", name=entry.name, why=error.line)
            return ()


@asynccontextmanager
async def packages(
    home: Home,
    rights: GrantFile,
    secrets: Secrets,
    egress: Egress,
    check: Check,
    at: Mapping[str, str] | None = None,
) -> AsyncIterator[Installed]:
    """Open the source of installed packages with what runs their tools; `egress` is closed, too.

    `check` judges what state verbs store; `at` is that of `Wiring`.
    """
    services = McpServices(egress, Pins(home.pins))
    wiring = Wiring(egress, secrets, services, at or {})
    try:
        with ObjectStore(home.state) as store:
            executors = partial(executor_of, wiring=wiring, store=store, check=check)
            yield Installed(home, rights, executors)
    finally:
        await wiring.close()


def executor_of(
    package: VerifiedPackage, tool: str, *, wiring: Wiring, store: ObjectStore, check: Check
) -> Executor | None:
    """Return what runs a tool of a package: a state verb, or its binding."""
    if tool not in BUILT_IN:
        return executor(package, tool, wiring=wiring)
    manifest = package.manifest
    state_model = model(manifest.schema_uri, manifest.schema)
    for warning in state_model.warnings:
        log.warning("state schema", schema=manifest.schema_uri, why=warning)
    return StateTool(tool, owner_of(package), state_model, store, check)
