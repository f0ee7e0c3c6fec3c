"""Where files of the command line live: the XDG places on Linux and macOS alike.

`CAPDEX_HOME` moves all four below one directory; `.capdex/` in a working directory belongs to
`capdex up` alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """The directories of this user; none is created before something is written."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @property
    def config_file(self) -> Path:
        """The user's configuration."""
        return self.config / "config.toml"

    @property
    def keys(self) -> Path:
        """Where new keys are written."""
        return self.data / "keys"


def places(environ: Mapping[str, str] | None = None) -> Places:
    """The places of this user, by `CAPDEX_HOME` or XDG."""
    home = (os.environ if environ is None else environ).get("CAPDEX_HOME")
    if home:
        root = Path(home).expanduser().absolute()
        return Places(root / "config", root / "data", root / "state", root / "cache")
    from platformdirs.unix import Unix

    unix = Unix("capdex")
    return Places(
        unix.user_config_path, unix.user_data_path, unix.user_state_path, unix.user_cache_path
    )
