"""An Agent Skill folder as a source: each `SKILL.md` is a skill whose files are its resources.

Format: agentskills.io specification (a folder with SKILL.md: YAML front matter with `name` and
`description`, then the instructions). A skill runs nothing here: its scripts are files to read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from capdex.errors import Code, InvalidInput
from capdex.json import Json, object_of
from capdex.profiles.cap import vars_of
from capdex.version import VERSION
from capdex.yaml.front_matter import read_front_matter
from capdex_router.model.capability import Capability, Owner
from capdex_router.model.refs import CapabilityRef
from capdex_router.policy.quoting import seen
from capdex_router.skills.document import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, SKILL

MAX_SKILL_BYTES: Final = 256 * 1024
MAX_FILE_BYTES: Final = 1024 * 1024
MAX_FILES: Final = 256
MAX_SKILLS: Final = 1_000
UNVERSIONED: Final = "0.0.0"
PREFIX: Final = "skill:"

log = structlog.get_logger(part="router")


def skills(folder: Path) -> Iterator[Capability]:
    """Yield the skills in a folder: it is one itself, or each of its folders may be one.

    One that does not follow its specification is left out, with a warning in the log.
    """
    inside = sorted(folder.iterdir())[:MAX_SKILLS]
    for path in [folder] if (folder / SKILL).is_file() else inside:
        try:
            if (path / SKILL).is_file():
                if path in inside and path.is_symlink():
                    raise _bad(path, "it is a link: name the folder that it leads to")
                yield read_skill(path)
        except (InvalidInput, OSError) as error:
            why = error.line if isinstance(error, InvalidInput) else str(error)
            log.warning("skill left out", folder=str(path), why=why)


def read_skill(folder: Path) -> Capability:
    """Return the skill of one folder; its digest covers SKILL.md and the list of its files."""
    data = _bounded(folder / SKILL, MAX_SKILL_BYTES)
    try:
        reading, prompt = read_front_matter(data.decode("utf-8", "replace").encode())
    except ValueError as error:
        raise _bad(folder, str(error)) from None
    front: Json = reading.value
    name, description = front.get("name", folder.resolve().name), front.get("description")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS:
        raise _bad(folder, f"name is no text, empty or over {MAX_NAME_CHARS} characters")
    if not isinstance(description, str) or not 0 < len(description) <= MAX_DESCRIPTION_CHARS:
        raise _bad(folder, f"description is missing or over {MAX_DESCRIPTION_CHARS} characters")
    version = str(object_of(front.get("metadata")).get("version", ""))
    if VERSION.fullmatch(version) is None:
        version = UNVERSIONED
    files = list(_files(folder))
    digest = hashlib.sha256(data + "\0".join(files).encode("utf-8")).hexdigest()
    return Capability(
        CapabilityRef(PREFIX + name, version),
        "skill",
        name,
        description,
        vars_of(None),
        Owner("skill", PREFIX + name, digest),
        prompt=seen(prompt.strip()),
        resources=tuple({"name": file} for file in files),
        read=partial(read_resource, folder),
    )


def read_resource(folder: Path, name: str) -> bytes:
    """Return a file of a skill; raises InvalidInput NOT_FOUND for any that is not its own."""
    if name not in _files(folder):
        raise InvalidInput(f"the skill has no file {name[:128]!r}", Code.NOT_FOUND)
    return _bounded(folder / name, MAX_FILE_BYTES)


def _files(folder: Path) -> Iterator[str]:
    """Yield the files beside SKILL.md, by their paths within the folder.

    Links are left out, and names that are no UTF-8: no message could hold them.
    """
    count = 0
    for place, folders, files in os.walk(folder):  # does not follow links to folders
        folders.sort()
        for file in sorted(files):
            path = Path(place) / file
            name = path.relative_to(folder).as_posix()
            if path.is_symlink() or name == SKILL or not path.is_file():
                continue
            if name.encode(errors="ignore").decode() != name:
                continue
            count += 1
            if count > MAX_FILES:
                raise InvalidInput(f"{folder.name} has more than {MAX_FILES} files")
            yield name


def _bounded(path: Path, limit: int) -> bytes:
    with path.open("rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise InvalidInput(f"{path.name} has over {limit} bytes", Code.TOO_LARGE)
    return data


def _bad(folder: Path, why: str) -> InvalidInput:
    return InvalidInput(f"{folder.name} is not an Agent Skill", why=why)
