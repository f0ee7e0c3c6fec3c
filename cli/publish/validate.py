"""Judging a file before it is published: the checks of every node, with places in the file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from capdex.ipld.cid import Cid
from capdex.manifest.manifest import Manifest, ManifestReading, read
from capdex.problems import REASONS, Problem, Reason, Severity, Verdict

if TYPE_CHECKING:
    from capdex.registry.events import Announcement


@dataclass(frozen=True, slots=True)
class Judged:
    """A file, its problems and, where it is signed, the verdict nodes would give it."""

    name: str
    data: bytes
    manifest: Manifest | None
    problems: tuple[Problem, ...]
    verdict: Verdict

    @property
    def valid(self) -> bool:
        """Whether nothing refuses the file. An unsigned one is valid: signing comes next."""
        return not any(problem.severity is Severity.ERROR for problem in self.problems)


def judge_file(name: str, data: bytes) -> Judged:
    """Read the file; if it is signed, judge it as though the account it names had published it."""
    reading = read(data)
    manifest = reading.manifest
    if manifest is None:
        return Judged(name, data, None, reading.problems, Verdict.INVALID)
    if manifest.signature is None:
        note = _problem(Reason.UNSIGNED, "metadata", "the package is not signed yet", reading)
        return Judged(name, data, manifest, (*reading.problems, note), Verdict.UNSIGNED)
    verdict, reason, message = _verdict(manifest, reading)
    if reason is None:
        return Judged(name, data, manifest, reading.problems, verdict)
    severity = Severity.WARNING if verdict is Verdict.SIGNED else Severity.ERROR
    found = _problem(reason, "metadata.signature", message, reading, severity)
    return Judged(name, data, manifest, (*reading.problems, found), verdict)


def claimed(manifest: Manifest, data: bytes) -> Announcement:
    """What the chain would say if the account that the file names had published it."""
    from capdex.registry.events import Announcement
    from capdex.signature.did import account_of

    account = account_of(manifest.publisher or manifest.author or "")
    cid = Cid.of(data)
    return Announcement(
        account.chain_id if account else 0,
        account.address if account else "0x" + "00" * 20,
        str(manifest.uri),
        str(manifest.uri.version),
        cid.text,
        cid.digest,
    )


def _verdict(manifest: Manifest, reading: ManifestReading) -> tuple[Verdict, Reason | None, str]:
    from capdex.package import RejectedPackage, judge

    judged = judge(claimed(manifest, reading.data), reading)
    if not isinstance(judged, RejectedPackage):
        return Verdict.VERIFIED, None, ""
    if judged.reason is Reason.NOT_BOUND:
        return judged.verdict, judged.reason, "the package names no account that may publish it"
    return judged.verdict, judged.reason, judged.message


def _problem(
    code: Reason,
    path: str,
    message: str,
    reading: ManifestReading,
    severity: Severity = Severity.NOTE,
) -> Problem:
    marks = reading.yaml.marks
    line, column = marks.get(tuple(path.split(".")), marks.get(("metadata",), (1, 1)))
    return Problem(code, path, message, line, column, severity, REASONS[code].hint)
