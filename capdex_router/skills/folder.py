"""The folder of a skill: compared with what a package says, replaced whole, and taken away.

A new folder is made beside the old one, and the two change places in one step of the file system:
whoever looks sees the old or the new one. No link is followed inside, and no file is ever run.
"""

from __future__ import annotations

import ctypes
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from capdex.errors import UsageError
from capdex.manifest.manifest import Manifest
from capdex.net.files import saying, sync_folder, write_folder
from capdex_router.skills.document import SKILL, skill_document

STAGING: Final = ".capdex-"  # of a folder in which a new or an old folder lies for a moment
_LEFTOVER: Final = re.compile(rf"{re.escape(STAGING)}[0-9a-f]{{8}}")
_AT_CWD: Final = -100
_EXCHANGE: Final = 2  # RENAME_EXCHANGE of renameat2(2)
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class SkillFile(NamedTuple):
    """A file as it should be."""

    data: bytes
    executable: bool = False


Content = Mapping[str, SkillFile]


def content(manifest: Manifest, sha256: str, files: Mapping[str, bytes]) -> Content:
    """Return all files of the folder by path; `files` are those that the package names.

    Raises InvalidInput for a package that cannot be a skill.
    """
    named = {x.path: SkillFile(files[x.path], x.executable) for x in manifest.resources}
    return {SKILL: SkillFile(skill_document(manifest, sha256)), **named}


def differences(folder: Path, expected: Content) -> dict[str, str]:
    """Return what is `edited`, `missing`, `extra` or of another `mode` in a folder, by path."""
    if folder.is_symlink() or not folder.is_dir():
        return {"": "edited" if os.path.lexists(folder) else "missing"}
    states = dict.fromkeys(expected, "missing")
    for path, place in _walk(folder):
        wanted = expected.get(path)
        if wanted is None:
            states[path] = "extra"
        elif (what := _difference(place, wanted)) is None:
            del states[path]
        else:
            states[path] = what
    return states


def holds_only(folder: Path, expected: Content) -> bool:
    """Return True if a folder holds these files alone; one that has more is not read further."""
    has_more = any(islice(_walk(folder), len(expected), None))
    return not has_more and not differences(folder, expected)


def check_free(folder: Path) -> None:
    """Raise UsageError if something is in the place of a folder that is to be made."""
    if folder.is_symlink() or folder.exists():
        raise UsageError(
            f"{folder} is there already, with other content",
            why="it is another version, or yours, or git changed its line ends: none is replaced",
            fix="move it away and try again, or name another directory with --to",
        )


@contextmanager
def staged(folder: Path, expected: Content) -> Iterator[Callable[[], None]]:
    """Write a folder beside its place, durably; the function given puts it there, whole.

    Raises UsageError UNREADABLE. What is not put in its place is gone at the end, with the folders
    above it that are new.
    """
    above: list[Path] = []
    beside = folder.parent / f"{STAGING}{secrets.token_hex(4)}"
    try:
        with _writing(folder, f"try again, or capdex remove {folder.name} and install elsewhere"):
            if (real := os.path.realpath(folder.parent)) != str(folder.parent):  # not agreed to
                raise OSError(f"a link in its path leads elsewhere, to {real}")
            above += [x for x in (folder.parent, *folder.parent.parents) if not x.exists()]
            folder.parent.mkdir(parents=True, exist_ok=True)
            drop_leftovers(folder.parent)
            beside.mkdir(mode=0o700)
        new = beside / folder.name
        modes = {path: 0o755 if file.executable else 0o644 for path, file in expected.items()}
        write_folder(new, {path: (file.data, modes[path]) for path, file in expected.items()})
        yield lambda: _put(new, folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
        with suppress(OSError):  # one is not empty, or was not made
            for parent in above:
                parent.rmdir()


def take_away(folder: Path, expected: Content) -> None:
    """Remove the files that were written and are still the same, and folders that are then empty.

    What was edited or added stays. Raises UsageError UNREADABLE.
    """
    drop_leftovers(folder.parent)
    if folder.is_symlink() or not folder.is_dir():
        return
    with _writing(folder):
        if not differences(folder, expected):  # in one step
            beside = folder.parent / f"{STAGING}{secrets.token_hex(4)}"
            beside.mkdir(mode=0o700)
            folder.rename(beside / folder.name)
            shutil.rmtree(beside, ignore_errors=True)
            sync_folder(folder.parent)
            return
        for path, place in list(_walk(folder)):
            wanted = expected.get(path)
            if wanted is not None and _difference(place, wanted) in (None, "mode"):
                place.unlink()
        for inside, _, _ in os.walk(folder, topdown=False):
            with suppress(OSError):  # it is not empty
                Path(inside).rmdir()
        sync_folder(folder.parent)


def _walk(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield all but folders, by their paths within the folder; a link is one of them."""
    for place, folders, files in os.walk(folder):
        links = [x for x in folders if os.path.islink(Path(place, x))]  # noqa: PTH114 - raises
        for name in (*files, *links):
            path = Path(place) / name
            yield path.relative_to(folder).as_posix(), path


def _difference(path: Path, wanted: SkillFile) -> str | None:
    with suppress(OSError):  # what cannot be read, or is gone meanwhile, is another one, too
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(wanted.data):
            return "edited"
        if path.read_bytes() == wanted.data:
            return None if bool(status.st_mode & 0o111) == wanted.executable else "mode"
    return "edited"


def _put(new: Path, folder: Path) -> None:
    """Let a new folder and what is in its place change places; the old one goes with `new`."""
    with _writing(folder, then="capdex sync"):  # it is in the lock file
        if not os.path.lexists(folder):
            new.rename(folder)
        elif not _exchange(new, folder):  # macOS, some file systems
            folder.rename(new.with_name(f"{folder.name}.old"))
            new.rename(folder)
        sync_folder(folder.parent)


def _exchange(first: Path, second: Path) -> bool:
    """Let two folders change places in one step; False where the system cannot."""
    call = getattr(_LIBC, "renameat2", None)
    names = (_AT_CWD, os.fsencode(first), _AT_CWD, os.fsencode(second), _EXCHANGE)
    return call is not None and call(*names) == 0


def drop_leftovers(parent: Path) -> None:
    """Remove what a killed process left; the caller holds the lock of the one writer."""
    for leftover in parent.glob(f"{STAGING}*"):
        if _LEFTOVER.fullmatch(leftover.name):  # others are a person's own
            shutil.rmtree(leftover, ignore_errors=True)


def _writing(folder: Path, then: str = "try again") -> AbstractContextManager[None]:
    fix = f"check the path, its permissions, and that the disk is not full; then: {then}"
    return saying(f"the folder {folder} cannot be written", fix)
