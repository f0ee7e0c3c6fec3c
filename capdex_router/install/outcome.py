"""What became of one capability that was to be installed, upgraded or brought up to date."""

from __future__ import annotations

from dataclasses import dataclass

from capdex.errors import CapdexError
from capdex_router.install.lockfile import Locked
from capdex_router.install.plan import InstallPlan


@dataclass(frozen=True, slots=True)
class InstallOutcome:
    """What became of one capability, or the `error`.

    `status` is `installed`, `upgraded`, `downgraded`, `unchanged`, `fetched`, `mended`, `removed`
    or `failed`. `lost` has a line for each file of a person that went with a folder, or the folder.
    """

    name: str
    status: str
    entry: Locked | None = None
    old: Locked | None = None
    plan: InstallPlan | None = None
    error: CapdexError | None = None
    lost: tuple[str, ...] = ()

    @property
    def pinned(self) -> str:
        """Why a package that is unchanged follows no newer version; empty if it follows all."""
        entry = self.entry
        if self.status != "unchanged" or entry is None or not entry.request:
            return ""
        return f"{entry.name}@{entry.request} was installed: install {entry.name} for the newest"
