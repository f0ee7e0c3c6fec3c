"""Directories of the user's files: the XDG base directories, on Linux and macOS alike.

`CAPDEX_HOME` moves all four below one directory. Only `capdex up` writes to `.capdex/` in a working
directory.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Directories:
    """The directories of this user. Each is created when a file is first written to it."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @property
    def config_file(self) -> Path:
        """The user's configuration file."""
        return self.config / "config.toml"

    @property
    def keys(self) -> Path:
        """The directory for new keys."""
        return self.data / "keys"


def user_directories(environ: Mapping[str, str] | None = None) -> Directories:
    """Return the directories of this user, by `CAPDEX_HOME` or XDG."""
    home = (os.environ if environ is None else environ).get("CAPDEX_HOME")
    if home:
        root = Path(home).expanduser().absolute()
        return Directories(root / "config", root / "data", root / "state", root / "cache")
    from platformdirs.unix import Unix

    unix = Unix("capdex")
    return Directories(
        unix.user_config_path, unix.user_data_path, unix.user_state_path, unix.user_cache_path
    )
