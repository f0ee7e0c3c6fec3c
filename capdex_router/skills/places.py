"""The folders in which hosts look for Agent Skills, in a project and for a user.

Source: the hosts' own lists of skills, tried with a skill in each place (docs/skills.md).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final, NamedTuple

from capdex.errors import UsageError

NEAR: Final = 0.7  # likeness to a host from which a text is taken for it


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

    `to` is a host of PLACES or a directory, which may be new. Raises UsageError for a directory
    with `user`, for an empty text, and for what looks like a host that is misspelt.
    """
    place = PLACES.get(to)
    near = [] if os.sep in to else get_close_matches(to.lower(), PLACES, 1, NEAR)
    if not to.strip() or (place is None and near and not (project / to).is_dir()):
        raise UsageError(
            f"{to!r} is neither a host nor a directory that is there",
            fix=f"did you mean {near[0]}? a new directory is ./{to}" if near else "name one",
        )
    if place is None:
        if user:
            raise UsageError(
                f"{to!r} is no host",
                why="a directory is the same for a project and for a user",
                fix=f"choose one of {', '.join(PLACES)}, or leave out --user",
            )
        root = project / Path(to).expanduser()
    elif user:
        own = environ.get(place.variable) if place.variable else None
        root = (Path(own) if own else Path(environ["HOME"]) / place.home) / "skills"
    else:
        root = project / place.project
    return root.resolve() / name
