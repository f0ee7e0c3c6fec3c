"""The folders in which hosts look for Agent Skills, in a project and for a user.

Source: the hosts' own lists of skills, tried with a skill in each place (docs/skills.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from capdex.errors import UsageError


class SkillPlace(NamedTuple):
    """Where a host looks: below a project, and below the user's folder of the host.

    `variable` names the folder of the host if it is set, else it is `home` below the user's.
    """

    project: str
    home: str
    variable: str = ""


PLACES: Final[Mapping[str, SkillPlace]] = {
    "claude": SkillPlace(".claude/skills", ".claude", "CLAUDE_CONFIG_DIR"),
    "codex": SkillPlace(".agents/skills", ".codex", "CODEX_HOME"),
    "gemini": SkillPlace(".gemini/skills", ".gemini"),
    "cursor": SkillPlace(".cursor/skills", ".cursor"),
    "copilot": SkillPlace(".agents/skills", ".copilot", "COPILOT_HOME"),
    "agents": SkillPlace(".agents/skills", ".agents"),
}


def folder_of(to: str, name: str, *, user: bool, project: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder of a skill for a host, or below a directory; links above it are resolved.

    `to` is a host of PLACES, a directory that is there, or the path of a new one. Raises UsageError
    for a directory with `user`, and for a word that is none of these, such as another host.
    """
    place = PLACES.get(to)
    if not to.strip() or (place is None and os.sep not in to and not (project / to).is_dir()):
        raise UsageError(
            f"{to!r} is neither a host nor a directory that is there",
            fix=f"choose one of {', '.join(PLACES)}; a new directory is ./{to.strip() or 'NAME'}",
        )
    if place is None and user:
        why = "a directory is the same for a project and for a user"
        fix = f"choose one of {', '.join(PLACES)}, or leave out --user"
        raise UsageError(f"{to!r} is no host", why=why, fix=fix)
    try:
        if place is None:
            root = Path(to).expanduser()
        elif not user:
            root = Path(place.project)
        elif place.variable and (own := environ.get(place.variable)):
            root = Path(own, "skills")
        else:
            root = Path(environ.get("HOME", "~"), place.home, "skills").expanduser()
        folder = (project / root).resolve() / name
        str(folder).encode()
    except (RuntimeError, UnicodeEncodeError) as error:  # no such user, links in a circle, no UTF-8
        fix = "name another directory with --to"
        raise UsageError(f"skills cannot be written for {to!r}", why=str(error), fix=fix) from None
    return folder
