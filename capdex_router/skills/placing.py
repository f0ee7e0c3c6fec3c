"""The folders of an installed package: written, compared, mended, and taken away with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from capdex.manifest.manifest import read
from capdex.package import VerifiedPackage
from capdex_router.policy.proposal import Access
from capdex_router.policy.quoting import quoted
from capdex_router.skills.folder import (
    Content,
    check_free,
    content,
    differences,
    drop_leftovers,
    holds_only,
    staged,
    take_away,
)

Block = Callable[[bytes], bytes | None]
MAX_LOST: Final = 8  # files of a folder that are named
_WORDS: Final = {
    "missing": "missing",
    "edited": "not what was installed",
    "extra": "not of the package",
    "mode": "executable where it was not, or not where it was",
}


class Placed(NamedTuple):
    """A package with its files by path, and the folders (absolute) that it is written into."""

    package: VerifiedPackage
    files: Mapping[str, bytes]
    folders: Collection[str]

    @property
    def _content(self) -> Content:
        package = self.package
        return content(package.manifest, package.announcement.sha256.hex(), self.files)

    def check(self, ours: Collection[str]) -> None:
        """Check that the folders can be written: others than `ours` must be free.

        One that holds just these files already, as after a clone of a project, is as good.

        Raises InvalidInput for a package that is no skill, UsageError for a place that is taken.
        """
        expected = self._content if self.folders else {}
        for folder in map(Path, self.folders):
            if str(folder) not in ours and not holds_only(folder, expected):
                check_free(folder)

    @contextmanager
    def staged(self) -> Iterator[Callable[[], None]]:
        """Write the folders beside their places; the function given puts them there.

        Raises UsageError if one cannot be written.
        """
        with ExitStack() as stack:
            expected = self._content if self.folders else {}
            puts = [stack.enter_context(staged(Path(folder), expected)) for folder in self.folders]

            def put() -> None:
                for move in puts:
                    move()

            yield put

    def drifts(self) -> Iterator[str]:
        """Yield a line for each file in the folders that is not as it was written."""
        for folder, states in self.differences():
            for path, what in sorted(states.items()):
                yield f"{Path(folder, path)} is {_WORDS[what]}"

    def losses(self) -> Iterator[str]:
        """Yield a line for each file, edited or added by somebody, that goes with its folder."""
        return chain.from_iterable(losses(folder, self._content) for folder in self.folders)

    def mend(self) -> bool:
        """Write each folder that differs anew, whole; return True if one did."""
        mended = False
        for folder, states in self.differences():
            drop_leftovers(Path(folder).parent)
            if states:
                with staged(Path(folder), self._content) as put:
                    put()
                mended = True
        return mended

    def differences(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield each folder, with what is not in it as it should be."""
        for folder in self.folders:
            yield folder, differences(Path(folder), self._content)

    def take_away(self) -> None:
        """Remove what was written into the folders; what was edited or added stays."""
        for folder in self.folders:
            take_away(Path(folder), self._content)


def written(name: str, sha256: str, block: Block) -> Content:
    """Return the files of a release by its sha256 (hex): none for another name, or if not here."""
    data = block(bytes.fromhex(sha256))
    manifest = None if data is None else read(data, lint=False).require()
    if manifest is None or manifest.uri.name != name:
        return {}
    return content(manifest, sha256, {x.path: block(x.sha256) or b"" for x in manifest.resources})


def losses(folder: str, expected: Content) -> Iterator[str]:
    """Yield a line for each file, edited or added by somebody, that a folder has."""
    states = differences(Path(folder), expected)
    lost = sorted(path for path, what in states.items() if what in ("edited", "extra"))
    for path in lost[:MAX_LOST]:
        yield f"{quoted(str(Path(folder, path)))}, {_WORDS[states[path]]}, is lost"
    if len(lost) > MAX_LOST:
        yield f"{len(lost) - MAX_LOST} more files in {quoted(folder)} are lost"


def folder_target(folder: str) -> str:
    """Return the target of the grant by which a package is written into a folder."""
    return f"folder:{folder}"


def folder_access(folder: str) -> Access:
    """Return what writing into a folder is."""
    line = f"writes SKILL.md and its files into {quoted(folder)}, for the agents that look there"
    return Access(folder_target(folder), (line,))
