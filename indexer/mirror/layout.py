"""Where the file of a name lies: https://doc.rust-lang.org/cargo/reference/registry-index.html"""

from __future__ import annotations

from typing import Final

from capdex.errors import InvalidInput
from capdex.uri import check_name

CONFIG: Final = "config.json"


def path_of(name: str) -> str:
    """The path of a name's file, in a mirror; raises InvalidInput for what is no name (P1)."""
    check_name(name)
    if len(name) < 4:
        return "/".join([str(len(name)), *([name[0]] if len(name) == 3 else []), name])
    return f"{name[:2]}/{name[2:4]}/{name}"


def name_at(path: str) -> str | None:
    """The name whose file would lie at a path; None where no name's would."""
    name = path.rpartition("/")[2]
    try:
        return name if path_of(name) == path else None
    except InvalidInput:
        return None
