"""Prepare package files for publication: validate, sign what is unsigned, verify."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final

from capdex.manifest.manifest import ManifestReading, read
from capdex.package import RejectedPackage, VerifiedPackage, judge
from capdex.problems import Problem, Reason
from capdex_publisher.authoring.files import read_files
from capdex_publisher.authoring.lint import lint, lint_files, refuse_mistakes, with_mistakes
from capdex_publisher.authoring.sign import Author, author_url, sign_file
from capdex_publisher.authoring.validate import PackageFile, announcement_of

OpenAuthor = Callable[[], Awaitable[Author]]

CURED_BY_SIGNING: Final = (Reason.UNSIGNED, Reason.BAD_SIGNATURE)


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file was read; it is not published if it has errors. `problems` are those of `validate`."""

    file: PackageFile
    reading: ManifestReading
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class FileSigned:
    """A file has a valid signature of `author`, made now or before; in a dry run not `written`."""

    file: PackageFile
    author: str
    written: bool = True


@dataclass(slots=True)
class Preparation:
    """Prepares the files of one call; the author's key is opened for the first that needs it.

    `allow_secret_like` has the paths of texts that look like secrets and are none.
    """

    account: str
    chain_id: int
    author: Author | OpenAuthor
    write: bool
    on_step: Callable[[FileRead | FileSigned], None]
    allow_secret_like: Collection[str] = ()

    async def prepare(self, file: PackageFile) -> VerifiedPackage | RejectedPackage:
        """Return the verified package; raise InvalidInput or VerificationFailure.

        A package that is bound to another account or chain is returned as rejected, because an
        endpoint of another chain is the more likely reason. A file that is signed is parsed once.
        A signature that does not match is replaced only if the file names the same author: another
        author has to correct it.
        """
        reading = read(file.data)
        mistakes = lint(reading, self.allow_secret_like)
        resources = reading.manifest.resources if reading.manifest else ()
        if resources:
            files = read_files(resources, file.folder).require(file.name, file.folder)
            mistakes += lint_files(reading, files, self.allow_secret_like)
        self.on_step(FileRead(file, reading, with_mistakes(reading, mistakes)))
        refuse_mistakes(mistakes)
        judged = self._judge(reading)
        written = True
        if isinstance(judged, RejectedPackage) and judged.reason in CURED_BY_SIGNING:
            written = self.write
            judged = await self._sign(file, judged)
        if isinstance(judged, RejectedPackage):
            if judged.reason is Reason.NOT_BOUND:
                return judged
            raise judged.failure()
        self.on_step(FileSigned(file, judged.signer.partition("#")[0], written))
        return judged

    def _judge(self, reading: ManifestReading) -> VerifiedPackage | RejectedPackage:
        announcement = announcement_of(reading, chain_id=self.chain_id, publisher=self.account)
        return judge(announcement, reading)

    async def _sign(
        self, file: PackageFile, judged: RejectedPackage
    ) -> VerifiedPackage | RejectedPackage:
        if callable(self.author):
            self.author = await self.author()
        author, named = self.author, judged.manifest and judged.manifest.author
        if judged.reason is Reason.BAD_SIGNATURE and named != author_url(author, self.chain_id):
            return judged
        signed = await sign_file(
            file, author, chain_id=self.chain_id, publisher=self.account, write=self.write
        )
        return self._judge(read(signed.data))
