"""The installer of one user, opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from capdex_router.bindings.pins import Pins
from capdex_router.catalog.short_forms import ShortForms
from capdex_router.home.audit_log import AuditLog
from capdex_router.home.config import Config
from capdex_router.home.directory import Home
from capdex_router.install.installer import Installer
from capdex_router.policy.grant_file import GrantFile
from capdex_router.state.store import ObjectStore


@contextmanager
def open_installer(home: Home, config: Config) -> Iterator[Installer]:
    """Open the installer of a user, with its audit log; `config` names the nodes that it asks."""

    def kept(owner: str) -> int:
        if not home.state.exists():
            return 0
        with ObjectStore(home.state) as store:
            return store.count(owner)

    with AuditLog(home.audit) as audit:
        yield Installer(
            home,
            config,
            rights=GrantFile(home.grants),
            audit=audit,
            seen=ShortForms(home).add,
            gone=Pins(home.pins).forget,
            kept=kept,
        )
