"""Files made ready to publish: judged as every node would, all problems shown, and signed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from capdex.errors import CapdexError, InvalidInput
from cli.publish.account import open_author
from cli.terminal.app import App
from cli.terminal.errors import exit_code, show
from cli.terminal.file_arguments import read
from cli.terminal.text import safe
from publisher.files import write_atomically

if TYPE_CHECKING:
    from capdex.problems import Problem
    from cli.publish.validate import Judged
    from publisher.authoring.sign import Author


@dataclass(frozen=True, slots=True)
class Packed:
    """A file that is ready: its name as typed and its signed bytes."""

    name: str
    data: bytes


class Packing:
    """Makes files ready; `codes` are the exit codes of those that could not be."""

    def __init__(self, app: App, address: str, where: str, *, write: bool) -> None:
        self._app = app
        self._address = address
        self._where = where  # on which network, and as whom
        self._write = write
        self._author: Author | None = None
        self.codes: list[int] = []

    async def pack(self, names: Sequence[str]) -> list[Packed]:
        """Judge and sign each; a file with problems has them shown and is left out."""
        ready = []
        if len(names) > 1:
            self._say_title(f"{len(names)} packages")
        for name in names:
            try:
                ready.append(Packed(name, await self._ready(name, many=len(names) > 1)))
            except CapdexError as error:
                self.fail(name, error)
        return ready

    def _say_title(self, title: str) -> None:
        bold = self._app.output.err.style(safe(title), bold=True)
        self._app.output.say(f"  {bold}   {self._where}")

    def fail(self, name: str, error: CapdexError) -> None:
        """Show why a file is not published."""
        self._app.output.step("fail", "not published", safe(name))
        error.details = {"file": name} | (error.details or {})
        show(error, self._app.output)
        self.codes.append(exit_code(error))

    async def _ready(self, name: str, *, many: bool) -> bytes:
        from cli.publish.validate import judge_file
        from cli.views.problems import counted
        from publisher.authoring.source import read_manifest

        judged = judge_file(name, read(name))
        if not many:
            uri = judged.manifest.uri if judged.manifest else None
            self._say_title(f"{uri.name} {uri.version}" if uri else name)
        if judged.manifest is None:
            raise self._invalid(judged)
        tools, triggers = len(judged.manifest.tools), len(judged.manifest.triggers)
        words = f"{_many(tools, 'tool')}, {_many(triggers, 'trigger')}, {counted(_others(judged))}"
        what = f"{judged.manifest.uri}   " if many else ""
        self._app.output.step("ok", "validated", what + words)
        data = await self._signed(judged)
        author = (read_manifest(data).author or "").partition("#")[0]
        if not many:
            self._app.output.step("ok", "signed", safe(author))
        return data

    async def _signed(self, judged: Judged) -> bytes:
        """Signed now if it is not, or no longer, and the author is ours."""
        from capdex.problems import Reason
        from publisher.authoring.sign import sign
        from publisher.authoring.source import read_manifest

        codes = {problem.code for problem in judged.problems}
        unsigned = Reason.UNSIGNED in codes
        if not unsigned and Reason.BAD_SIGNATURE not in codes:
            return judged.data
        self._author = self._author or await open_author(self._app)
        chain_id = self._app.settings.need_network("chain_id").chain
        signed = await sign(judged.data, self._author, chain_id=chain_id, publisher=self._address)
        was, now = judged.manifest, read_manifest(signed)
        if not unsigned and was is not None and now.author != was.author:
            return judged.data  # somebody else's signature is theirs to mend; the check says why
        if self._write and judged.name != "-":
            write_atomically(Path(judged.name), signed)
        return signed

    def _invalid(self, judged: Judged) -> InvalidInput:
        from capdex.problems import Severity
        from cli.views.problems import counted, full

        errors = [x for x in judged.problems if x.severity is Severity.ERROR]
        for problem in errors:
            for line in full(judged.name, judged.data, problem, self._app.output.err):
                self._app.output.say(line)
        return InvalidInput(
            f"{judged.name} is not a valid package",
            why=counted(errors),
            fix=f"mend what is shown above; check it with: capdex validate {judged.name}",
            details={"problems": [problem.to_json() for problem in judged.problems]},
        )


def _others(judged: Judged) -> list[Problem]:
    from capdex.problems import Reason

    mended = (Reason.UNSIGNED, Reason.BAD_SIGNATURE)  # by signing, if the author is ours
    return [x for x in judged.problems if x.code not in mended]


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
