"""An Agent Skill as a package: its instructions become the prompt, its other files are named.

Format: agentskills.io specification (a folder with SKILL.md: YAML front matter with `name` and
`description`, then the instructions).
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

from capdex.errors import InvalidInput
from capdex.manifest.manifest import MAX_PROMPT_BYTES
from capdex.net.files import unreadable
from capdex.yaml.front_matter import read_front_matter
from capdex_publisher.authoring.files import list_files
from capdex_publisher.authoring.imports.draft import Draft
from capdex_publisher.authoring.imports.report import (
    DOCUMENT,
    UNSEEN,
    Note,
    clean,
    name_of,
    unseen,
    written,
)
from capdex_publisher.authoring.imports.source import read_file, utf8

SKILL: Final = "SKILL.md"
MAX_LOOKED_AT: Final = 1_000  # folders, for skills in a repository of many
MAX_NAMED: Final = 8
HOSTS_TAKE: Final = 1_024  # characters of a description, by the specification

_COMMENT: Final = re.compile(rb"(?m)^(name|description|license):[ \t]+[^\s'\">|][^\n]*?[ \t](#.*)")
_UNHEARD: Final = "hosts will not see it: say in the instructions what matters of it"
_BY_PERSONS: Final = (
    "an agent may use it by itself: say in the instructions that a person has to ask for it"
)
_CARRIED: Final = frozenset(["name", "description", "license", "homepage"])


def import_skill(folder: Path, wanted: str = "") -> Draft:
    """Return the draft of a skill's folder, or of its SKILL.md; `wanted` is the name to have.

    Files that a package cannot carry are in the notes, with the reason. Raises UsageError
    UNREADABLE, or InvalidInput for a SKILL.md that does not follow its specification.
    """
    path = _file_of(folder)
    if (read := read_file(path)).startswith(b"PK\x03\x04"):  # as .skill and .zip files do
        raise _bad(
            str(path), "it is an archive", "unpack it, and name the folder with its SKILL.md"
        )
    data, notes = utf8(read)
    front, prompt, odd = split(data, str(path))
    notes += odd
    for word in _CARRIED & front.keys():
        if isinstance(front[word], dict | list):
            raise _bad(str(path), f"the {word} in its front matter is no text: put it in quotes")
    name, description = clean(front.get("name")), clean(front.get("description"))
    own = wanted or name_of(name) or name_of(path.resolve().parent.name)
    if own != name and not wanted:
        notes.append(Note(DOCUMENT, "name", "changed", name, own))
    if not own or not description:
        missing = "description" if own else "name"
        raise _bad(str(path), f"its front matter has no {missing}")
    if (size := len(prompt.encode())) > MAX_PROMPT_BYTES:
        raise InvalidInput(
            f"{path} is too long for a prompt",
            why=f"its instructions have {size} bytes; a prompt has at most {MAX_PROMPT_BYTES}",
            fix="keep what each use needs, and move the rest into files beside it",
        )
    if len(description) > HOSTS_TAKE:
        why = f"hosts take at most {HOSTS_TAKE}: shorten it, or it cannot be written as a skill"
        length = f"{len(description)} characters"
        notes.append(Note(DOCUMENT, "description", "changed", length, why))
    for key in [x for x in front if x not in _CARRIED]:
        why = _BY_PERSONS if key == "disable-model-invocation" and front[key] is True else _UNHEARD
        notes.append(
            Note(DOCUMENT, f"{key} of its front matter", "left out", written(front[key]), why)
        )
    files, left = list_files(path.parent)
    notes += [Note(DOCUMENT, f"file {file}", "left out", "", why) for file, why in left.items()]
    # The exact name is kept where the package has another one.
    title = name if own != name else name.replace("-", " ").title()
    return Draft(
        own,
        title,
        description,
        prompt=prompt,
        license=clean(front.get("license")),
        homepage=clean(front.get("homepage")),
        notes=notes,
        files=files,
    )


def _file_of(folder: Path) -> Path:
    path = folder if folder.is_file() else folder / SKILL
    if not path.is_file() and folder.is_dir():
        others = (x for x in sorted(folder.iterdir()) if x.name.lower() == SKILL.lower())
        path = next(others, path)
    if not path.is_file():
        walk = islice(os.walk(folder), MAX_LOOKED_AT)
        inside = sorted(at for at, _, names in walk if SKILL in names)
        named = ", ".join(inside[:MAX_NAMED]) + (", …" if inside[MAX_NAMED:] else "")
        fix = "name a folder that has a SKILL.md, or the file itself; clone a repository first"
        if inside:
            fix = f"name one of the folders in it that have one: {named}"
        raise replace(unreadable(str(path), "there is no such file"), fix=fix)
    return path


def split(data: bytes, name: str) -> tuple[dict[str, Any], str, list[Note]]:
    """Return the front matter and the instructions of a SKILL.md; raises InvalidInput.

    With them comes what of the front matter is not read as it stands, such as a key's second value.
    """
    try:
        reading, text = read_front_matter(data)
    except ValueError as error:
        raise _bad(name, str(error)) from None
    text = re.sub(r"\A\s*\n", "", text).rstrip()
    prompt = text[: -len(text.lstrip())] + clean(text)  # its first line may be indented
    if not prompt:
        raise _bad(name, "it has no instructions below its front matter")
    notes = [Note(DOCUMENT, "front matter", "changed", "", x.message) for x in reading.problems]
    for word, comment in _COMMENT.findall(reading.data):
        why = "to YAML it is a comment: put the text in quotes"
        notes.append(
            Note(DOCUMENT, word.decode(), "left out", comment.decode("utf-8", "replace"), why)
        )
    if lost := unseen(text):
        notes.append(Note(DOCUMENT, "instructions", "left out", lost, UNSEEN))
    return reading.value, prompt, notes


def _bad(name: str, why: str, fix: str = "") -> InvalidInput:
    fix = (
        fix or "begin it with --- and the lines name: … and description: …, then --- and what to do"
    )
    return InvalidInput(f"{name} is not an Agent Skill", why=why, fix=fix)
