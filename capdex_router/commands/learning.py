"""Learning a program: find it, probe it in the sandbox, show what was found, and keep it on a yes.

The yes is a grant of the program, bound to what was found. Probes see known files alone, no
network, and end soon (CMP, Adapting Existing CLIs).
"""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from capdex.errors import Code, InvalidInput, Unavailable
from capdex_router.commands import adapters
from capdex_router.commands.adapters import KNOWN_CONTENT
from capdex_router.commands.executor import FACETS
from capdex_router.commands.help import MAX_HELP_BYTES
from capdex_router.commands.intents.manifest import CommandTool
from capdex_router.commands.intents.match import is_guarded
from capdex_router.commands.learned import Learned
from capdex_router.commands.probe import by_help, learn
from capdex_router.commands.sandbox.bubblewrap import (
    ProcessLimits,
    ProcessResult,
    Sandbox,
    Surroundings,
)
from capdex_router.commands.store import LearnedStore
from capdex_router.home.audit_log import AuditLog
from capdex_router.model.requests import ProcessRequest
from capdex_router.policy.consent import Asker, agree, clean
from capdex_router.policy.grant_file import GrantFile
from capdex_router.policy.permissions import target
from capdex_router.policy.proposal import Access, Proposal
from capdex_router.policy.quoting import escaped, quoted

PREFIX: Final = "learned:"
MAX_COMMAND_CHARS: Final = 2_048  # of a template that is shown whole
PROBE_S: Final = 10.0  # milliseconds, except on a machine under heavy load
LEARN_S: Final = 120.0  # for all that is run of one program
LIMITS: Final = ProcessLimits(stdout_bytes=MAX_HELP_BYTES)


@dataclass(eq=False)
class Learning:
    """Learns programs into a store. What was learned is a line of `audit`."""

    store: LearnedStore
    _: KW_ONLY
    grants: GrantFile
    audit: AuditLog
    sandbox: Callable[[], Sandbox] = lambda: Sandbox.find(limits=LIMITS)

    async def study(
        self,
        program: str,
        adapter: CommandTool | None = None,
        *,
        writable: bool = False,
        readable: Sequence[Path] = (),
    ) -> Learned:
        """Return what a program turns out to be; nothing is kept.

        `program` is a name on the PATH, or a path. Without an adapter the one that comes with the
        router is taken, or its help alone. Raises InvalidInput for a program that is not there, has
        no help, or does not have the options that its intents use.
        """
        path = _path_of(program)
        adapter = adapter or adapters.find(Path(program).name)
        if adapter.manifest.binary != Path(program).name:
            raise InvalidInput(
                f"the intents are for {adapter.manifest.binary}, not for {Path(program).name}",
                fix="give the intents of this program, or none",
            )
        return await self._probed(path, adapter, tuple(readable), writable=writable)

    def keep(self, learned: Learned) -> None:
        """Keep what a person agreed to."""
        proposal = self.proposal(learned)
        self.audit.write("learn", **proposal.audited(), agreed=True)
        self._forget_grants(owner_name(learned))
        self.store.put(learned)
        self.grants.grant(proposal.grants(time.time()))

    def forget(self, name: str) -> Learned:
        """Forget a tool by its name, or by its program's if no other tool is of that program.

        Raises InvalidInput, NOT_FOUND if there is none.
        """
        name = Path(name.removeprefix(PREFIX)).name
        known = self.store.all()
        names = [x for x, learned in known.items() if learned.tool.manifest.binary == name]
        names = [name] if name in known else names
        if not names:
            raise InvalidInput(
                f"no tool {clean(name)!r} is learned",
                Code.NOT_FOUND,
                fix="capdex learn lists what is learned",
            )
        if len(names) > 1:
            what = f"several tools are of the program {clean(name)!r}"
            raise InvalidInput(what, why=", ".join(names), fix="name one of the tools")
        learned = known[names[0]]
        self.audit.write("forget", capability_id=owner_name(learned))
        self._forget_grants(owner_name(learned))
        self.store.remove(names[0])
        return learned

    async def again(self, old: Learned) -> None:
        """Learn a program again, whose bytes changed, by the same intents or help; its grants go.

        Raises InvalidInput if it does not have the options any more.
        """
        written = old.tool.intents if any(intent.patterns for intent in old.tool.intents) else ()
        adapter = replace(old.tool, intents=written)
        new = await self._probed(old.program, adapter, old.readable, writable=old.writable)
        self.audit.write("learn", capability_id=owner_name(new), digest=new.content, again=True)
        self._forget_grants(owner_name(old))
        self.store.put(new)

    async def learn(self, program: str, asker: Asker) -> str:
        """Learn a program by its name, if the person agrees; return the name of the tool.

        Raises Refused if the person does not agree, and what `study` raises.
        """
        if Path(program).name != program:
            raise InvalidInput(
                "give the name of a program",
                fix=f"a person can run: {shlex.join(['capdex', 'learn', program])}",
            )
        learned = await self.study(program)
        if not self.is_known(learned):
            await agree(self.proposal(learned), asker, self.audit.write)
            self.keep(learned)
        return owner_name(learned)

    def is_known(self, learned: Learned) -> bool:
        """Return True if just this was learned before."""
        old = self.store.all().get(learned.tool.manifest.name)
        return old is not None and old.content == learned.content

    def _forget_grants(self, name: str) -> None:
        if (old := self.store.all().get(name.removeprefix(PREFIX))) is not None:
            self.grants.forget([old.content])

    def proposal(self, learned: Learned) -> Proposal:
        """Return what a person agrees to: the program, each command, and what it reaches."""
        old = self.store.all().get(learned.tool.manifest.name)
        program, version = str(learned.program), learned.tool.manifest.version
        room = "changes files in" if learned.writable else "reads"
        asked = target(ProcessRequest((program,)))
        return Proposal(
            "learn",
            f'Learn the program "{escaped(program)}" as a tool?',
            owner_name(learned),
            version,
            learned.content,
            ("capdex", "learn", learned.tool.manifest.binary),
            accesses=(
                Access(asked, (f'runs "{escaped(program)}", sha256 {learned.digest}',)),
                *(Access("", (command,)) for command in _commands(learned)),
            ),
            facts=(
                f"it {room} the work directory of the router, without a network",
                *(f"it reads {quoted(str(path))}, too" for path in learned.readable),
                *_left_out(learned),
                *(() if old is None else (f'it replaces "{escaped(str(old.program))}"',)),
            ),
            granted=(asked,),
        )

    async def _probed(
        self, path: Path, adapter: CommandTool, readable: tuple[Path, ...], *, writable: bool
    ) -> Learned:
        sandbox = self.sandbox()
        ends = time.monotonic() + LEARN_S
        with TemporaryDirectory(prefix="capdex-learn-") as folder:
            work = Path(folder).resolve()  # noqa: ASYNC240 - a local folder
            for file, text in KNOWN_CONTENT.items():
                (work / file).write_text(text, "utf-8")
            around = Surroundings(work, readable=readable, environment=FACETS)

            async def run(argv: Sequence[str]) -> ProcessResult:
                if time.monotonic() > ends:
                    raise Unavailable(
                        f"{path.name} takes over {LEARN_S:g} s",
                        Code.TIMEOUT,
                        fix="give the intents that you need: --intents",
                    )
                return await sandbox.run(argv, around, timeout_s=PROBE_S)

            name = adapter.manifest.binary
            intents = adapter.intents or await by_help(name, path, run, writable=writable)
            learned = await learn(replace(adapter, intents=intents), path, run)
        return replace(learned, writable=writable, readable=readable)


def owner_name(learned: Learned) -> str:
    """Return the name to which grants are bound: `learned:<tool>`."""
    return PREFIX + learned.tool.manifest.name


def _commands(learned: Learned) -> Iterator[str]:
    for intent in learned.tool.intents:
        asks = " (asks each time)" if is_guarded(intent) else ""
        phrase = f"{quoted(intent.patterns[0])}: " if intent.patterns else ""
        yield f"{phrase}{quoted(intent.template.text, MAX_COMMAND_CHARS)}{asks}"


def _left_out(learned: Learned) -> Iterator[str]:
    """Yield a line of the commands that a help lists and that are no tools, if others of it are."""
    left = [name for name in learned.help.subcommands if name not in learned.commands]
    if left and learned.commands and not any(x.patterns for x in learned.tool.intents):
        some = quoted(" ".join(left[:8])) + (" …" if len(left) > 8 else "")
        yield f"commands of its help that are no tools: {len(left)}, {some}"


def _path_of(program: str) -> Path:
    path = shutil.which(program)
    if path is None:
        raise InvalidInput(
            f"there is no program {clean(program)!r}",
            Code.NOT_FOUND,
            fix="install it; with its path a person can run: capdex learn PATH",
        )
    found = Path(path).parent.resolve() / Path(path).name
    real = found.resolve()
    # busybox and rustup are many programs, each by the name of its link, which a sandbox must see.
    seen = real.is_relative_to("/usr") or not found.is_relative_to("/usr")
    return found if seen and real.name != found.name else real
