"""Validate a package file as a node would, before anything is announced."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from capdex.did import account_of
from capdex.errors import Code, InvalidInput
from capdex.ipld.cid import Cid
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.manifest.manifest import Manifest, ManifestReading, read
from capdex.net.files import unreadable
from capdex.package import RejectedPackage, judge
from capdex.problems import Problem, Reason, Severity, Verdict
from capdex.registry.events import Announcement
from capdex.registry.state import ZERO_ADDRESS
from capdex_publisher.authoring.files import folder_of, read_files
from capdex_publisher.authoring.lint import lint, lint_files, problem_at, with_mistakes


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file to sign or publish. A signature made now is written back to `path`, if it is set.

    `files` is the folder of what the package names, if it is none of the usual ones (`folder_of`).
    """

    name: str
    data: bytes
    path: Path | None = None
    files: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of the files that the package names."""
        return folder_of(self.path, self.files)

    @classmethod
    def read(cls, path: Path | str) -> PackageFile:
        """Read a file; raise UsageError UNREADABLE or InvalidInput TOO_LARGE."""
        path = Path(path)
        try:
            with path.open("rb") as file:
                data = file.read(MAX_PACKAGE_BYTES + 1)
                size = max(len(data), os.fstat(file.fileno()).st_size)  # a pipe has no size
        except OSError as error:
            raise unreadable(str(path), error.strerror or "") from None
        if len(data) > MAX_PACKAGE_BYTES:
            raise InvalidInput(
                f"{path} is too large: {size} bytes; a package has at most {MAX_PACKAGE_BYTES}",
                Code.TOO_LARGE,
                fix="shorten the prompt, the schema or the tools",
            )
        return cls(str(path), data, path)


@dataclass(frozen=True, slots=True)
class PackageValidation:
    """Problems of a package file and the verdict nodes would give it."""

    file: PackageFile
    manifest: Manifest | None
    problems: tuple[Problem, ...]
    verdict: Verdict

    @property
    def valid(self) -> bool:
        """True if no problem is an error. An unsigned file can be valid: signing comes next."""
        return not any(problem.severity is Severity.ERROR for problem in self.problems)


def validate(
    file: PackageFile, allow: Collection[str] = (), *, with_files: bool = True
) -> PackageValidation:
    """Check a file; a signed one is judged as if the account it names had published it.

    The files that it names are checked where they are there, unless `with_files` is False: a
    file that somebody else sent may name any here. `allow` has paths of texts that look like
    secrets and are none.
    """
    reading = read(file.data)
    problems = with_mistakes(reading, lint(reading, allow))
    if reading.manifest is None:
        return PackageValidation(file, None, _foreign(file) or problems, Verdict.INVALID)
    judged = judge(self_announcement(reading), reading)
    if with_files:
        problems = (*problems, *_of_files(file, reading, allow))
    if isinstance(judged, RejectedPackage):
        problems = (*problems, _problem(judged, reading))
    return PackageValidation(file, reading.manifest, problems, judged.verdict)


def _of_files(
    file: PackageFile, reading: ManifestReading, allow: Collection[str]
) -> Iterator[Problem]:
    """Yield the problems of the files that a package names; a note if none of them is here."""
    resources, folder = reading.require().resources, file.folder
    files = read_files(resources, folder)
    if resources and file.files is None and not any((folder / x.path).exists() for x in resources):
        message = f"its {len(resources)} files are not in {folder}, so they were not checked"
        yield problem_at(
            reading, Reason.BAD_RESOURCE, ("resources",), message, Severity.NOTE,
            "name their folder with --files",
        )  # fmt: skip
        return
    yield from lint_files(reading, files.data, allow)
    for i, resource in enumerate(resources):
        if why := files.faults.get(resource.path):
            at, message = ("resources", i), f"{resource.path} in {folder} {why}"
            hint = f"take out its line if it is gone, then: capdex sign {shlex.quote(file.name)}"
            yield problem_at(reading, Reason.BAD_RESOURCE, at, message, Severity.ERROR, hint)


def announcement_of(reading: ManifestReading, *, chain_id: int, publisher: str) -> Announcement:
    """Return what the chain would say if these bytes were published; raise InvalidInput."""
    uri, cid = reading.require().uri, Cid.of(reading.data)
    return Announcement(chain_id, publisher, str(uri), str(uri.version), str(cid), cid.digest)


def self_announcement(reading: ManifestReading) -> Announcement:
    """Return what the chain would say if the account that the file names had published it."""
    manifest = reading.require()
    account = account_of(manifest.publisher or manifest.author or "")
    chain_id, address = (account.chain_id, account.address) if account else (0, ZERO_ADDRESS)
    return announcement_of(reading, chain_id=chain_id, publisher=address)


def _foreign(file: PackageFile) -> tuple[Problem, ...]:
    """Return one problem for a file of another format that `init` can import; else none."""
    from capdex_publisher.authoring.imports.detect import (  # a tenth of a second
        FORMATS,
        import_option_for,
    )

    option = import_option_for(file.data)
    if not option:
        return ()
    message = f"this is {FORMATS[option]} and not a package"
    hint = f"make a package of it: capdex init {option} {shlex.quote(file.name)}"
    return (Problem(Reason.MISSING_FIELD, "", message, 1, 1, Severity.ERROR, hint),)


def _problem(judged: RejectedPackage, reading: ManifestReading) -> Problem:
    """Return the rejection of a well-formed file as a problem with its place in the file."""
    reason, message = judged.reason, judged.message
    severity = Severity.WARNING if judged.verdict is Verdict.SIGNED else Severity.ERROR
    if reason is Reason.UNSIGNED:
        message, severity = "the package is not signed yet", Severity.NOTE
    elif reason is Reason.NOT_BOUND:
        message = "the package names no account that may publish it"
    path = ("metadata",) if reason is Reason.UNSIGNED else ("metadata", "signature")
    return problem_at(reading, reason, path, message, severity)
