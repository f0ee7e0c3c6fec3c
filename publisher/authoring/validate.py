"""Validate a package file as a node would, before anything is announced."""

from __future__ import annotations

from dataclasses import dataclass

from capdex.did import account_of
from capdex.ipld.cid import Cid
from capdex.manifest.manifest import Manifest, ManifestReading, read
from capdex.package import RejectedPackage, judge
from capdex.problems import REASONS, Problem, Reason, Severity, Verdict
from capdex.registry.events import Announcement
from publisher.authoring.package_file import PackageFile
from publisher.errors import NO_ADDRESS


@dataclass(frozen=True, slots=True)
class Validation:
    """Problems of a package file and the verdict nodes would give it."""

    file: PackageFile
    manifest: Manifest | None
    problems: tuple[Problem, ...]
    verdict: Verdict

    @property
    def valid(self) -> bool:
        """True if no problem is an error. An unsigned file can be valid: signing comes next."""
        return not any(problem.severity is Severity.ERROR for problem in self.problems)


def validate(file: PackageFile) -> Validation:
    """Check a file; a signed one is judged as if the account it names had published it."""
    reading = read(file.data)
    if reading.manifest is None:
        return Validation(file, None, reading.problems, Verdict.INVALID)
    judged = judge(self_announcement(reading), reading)
    problems = reading.problems
    if isinstance(judged, RejectedPackage):
        problems = (*problems, _problem(judged, reading))
    return Validation(file, reading.manifest, problems, judged.verdict)


def announcement_of(reading: ManifestReading, *, chain_id: int, publisher: str) -> Announcement:
    """Return what the chain would say if these bytes were published; raise InvalidInput."""
    uri, cid = reading.require().uri, Cid.of(reading.data)
    return Announcement(chain_id, publisher, str(uri), str(uri.version), str(cid), cid.digest)


def self_announcement(reading: ManifestReading) -> Announcement:
    """Return what the chain would say if the account that the file names had published it."""
    manifest = reading.require()
    account = account_of(manifest.publisher or manifest.author or "")
    chain_id, address = (account.chain_id, account.address) if account else (0, NO_ADDRESS)
    return announcement_of(reading, chain_id=chain_id, publisher=address)


def _problem(judged: RejectedPackage, reading: ManifestReading) -> Problem:
    """Return the rejection of a well-formed file as a problem with its place in the file."""
    reason, message, path = judged.reason, judged.message, "metadata.signature"
    severity = Severity.WARNING if judged.verdict is Verdict.SIGNED else Severity.ERROR
    if reason is Reason.UNSIGNED:
        message, path, severity = "the package is not signed yet", "metadata", Severity.NOTE
    elif reason is Reason.NOT_BOUND:
        message = "the package names no account that may publish it"
    marks = reading.yaml.marks
    line, column = marks.get(tuple(path.split(".")), marks.get(("metadata",), (1, 1)))
    return Problem(reason, path, message, line, column, severity, REASONS[reason].hint)
