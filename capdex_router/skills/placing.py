"""The folders of an installed package: written, compared, mended, and taken away with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from capdex.package import VerifiedPackage
from capdex_router.install.lockfile import Locked
from capdex_router.install.plan import InstallPlan, folder_target
from capdex_router.skills.folder import (
    check_free,
    content,
    differences,
    drop_leftovers,
    staged,
    take_away,
)


def check_folders(plan: InstallPlan) -> None:
    """Check that a plan's folders can be written; raises as `placing`, and writes nothing."""
    if plan.entry.folders:
        content(plan.package, plan.files)
    for folder in plan.entry.folders:
        if folder_target(folder) not in plan.had:
            check_free(Path(folder))


@contextmanager
def placing(plan: InstallPlan) -> Iterator[Callable[[], None]]:
    """Write the folders of a plan beside their places; the function given puts them there.

    Raises InvalidInput for a package that is no skill, UsageError if something else is in a place
    or it cannot be written.
    """
    check_folders(plan)
    with ExitStack() as stack:
        puts = [
            stack.enter_context(staged(Path(folder), content(plan.package, plan.files)))
            for folder in plan.entry.folders
        ]

        def put() -> None:
            for one in puts:
                one()

        yield put


def drifts(entry: Locked, package: VerifiedPackage, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield a line for each file in a folder of an entry that is not as it was written."""
    for folder in entry.folders:
        for path, what in sorted(differences(Path(folder), content(package, files)).items()):
            yield f"{Path(folder, path)} is {_WORDS[what]}"


def mend(entry: Locked, package: VerifiedPackage, files: Mapping[str, bytes]) -> bool:
    """Write each folder that differs anew, whole; return True if one did."""
    mended = False
    for folder in map(Path, entry.folders):
        drop_leftovers(folder.parent)
        expected = content(package, files)
        if differences(folder, expected):
            with staged(folder, expected) as put:
                put()
            mended = True
    return mended


def take_all_away(entry: Locked, package: VerifiedPackage, files: Mapping[str, bytes]) -> None:
    """Remove what was written into the folders of an entry; what was edited or added stays."""
    for folder in entry.folders:
        take_away(Path(folder), content(package, files))


_WORDS = {
    "missing": "missing",
    "edited": "not what was installed",
    "extra": "not of the package",
    "mode": "executable where it was not, or not where it was",
}
