"""The `cli` binding: a learned command, run in the sandbox with the values of a call."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from capdex.errors import Code, ExecutionFailed, Refused
from capdex.json import Json
from capdex.yaml.characters import beginning
from capdex_router.commands import output
from capdex_router.commands.intents.template import CommandTemplate
from capdex_router.commands.sandbox.bubblewrap import Sandbox, Surroundings
from capdex_router.model.requests import ProcessRequest, Request
from capdex_router.policy.quoting import said

# CMP, Faceted Tools, and CMP v0.1.0, 6.1: a program sees that an agent reads its output.
FACETS: Final = {"CMP_ROUTER": "1", "CMP_AGENT": "1", "NO_COLOR": "1", "TERM": "dumb"}
MAX_SHOWN_CHARS: Final = 4_000  # of an output in an error, and of what stands beside an output


@dataclass(frozen=True, slots=True)
class CommandExecutor:
    """Executor of one learned command.

    `program` is the resolved path of the program and `digest` the sha256 of its bytes in hex when
    it was learned. An exit code of `successes` is not an error (1 is "no match" of grep).
    """

    program: Path
    digest: str
    template: CommandTemplate
    sandbox: Sandbox
    around: Surroundings
    kind: output.Kind = "lines"
    successes: frozenset[int] = frozenset((0,))

    def requests(self, arguments: Json) -> Sequence[Request]:
        """Return the one process that a run would start; raises InvalidInput."""
        return (ProcessRequest(self._argv(arguments), str(self.around.work), self.around.writable),)

    async def run(self, arguments: Json, *, timeout_s: float) -> Json:
        """Run the command and return its output as JSON.

        Raises Refused if the program is not the one that was learned, Unavailable TIMEOUT, and
        ExecutionFailed for an exit code that is not a success.
        """
        if (digest := digest_of(self.program)) != self.digest:
            raise Refused(
                f"{self.program} is not the program that was learned",
                Code.PERMISSION_DENIED,
                why="its bytes changed" if digest else "it cannot be read",
                fix=f"look at it, then `capdex learn {shlex.quote(str(self.program))}`",
            )
        around = replace(self.around, environment={**self.around.environment, **FACETS})
        ran = await self.sandbox.run(self._argv(arguments), around, timeout_s=timeout_s)
        words = ran.stderr.decode(errors="replace").strip()
        if ran.exit_code not in self.successes:
            found = _shown(ran.stdout.decode(errors="replace"))  # by diff, or a linter
            does = "changes" if around.writable else "only reads"
            raise ExecutionFailed(
                f"{self.program.name} ended with exit code {ran.exit_code}",
                why=said(words) if words else "",
                details={"exit_code": ran.exit_code} | ({"stdout": found} if found else {}),
                fix="change the input by what it says; the program has no network, and "
                f"{does} {around.work}; a person can run: "
                f"capdex learn {shlex.quote(str(self.program))} --writable, or --read DIR",
            )
        return output.parse(self.kind, ran.stdout, _shown(words), truncated=ran.truncated)

    def _argv(self, arguments: Json) -> tuple[str, ...]:
        return (str(self.program), *self.template.argv(arguments)[1:])


def _shown(text: str) -> str:
    """Return the first MAX_SHOWN_CHARS characters of a text, and how many more it has."""
    first = beginning(text, MAX_SHOWN_CHARS)
    more = len(text) - len(first)
    return f"{first}\n… and {more} more characters" if more else text


def digest_of(program: Path) -> str:
    """Return the sha256 of a program in hex, or nothing if it cannot be read."""
    try:
        status = program.stat()
        return _digest(program, status.st_ino, status.st_size, status.st_ctime_ns)
    except OSError:
        return ""


@lru_cache(maxsize=256)
def _digest(program: Path, _inode: int, _size: int, _changed_ns: int) -> str:
    with program.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
