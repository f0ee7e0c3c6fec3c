"""What a sandboxed program asks of the kernel: its filter of system calls, and the key rings."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from errno import EAFNOSUPPORT, ENOSYS, EPERM
from pathlib import Path
from typing import Any

import pytest

from capdex_router.commands.sandbox import seccomp
from capdex_router.commands.sandbox.bubblewrap import ProcessResult, Sandbox, Surroundings

PYTHON = Path(sys.executable).resolve()
MACHINE = platform.machine()
KNOWN: dict[str, Any] = seccomp.MACHINES[MACHINE]
NUMBERS: dict[str, int] = {**KNOWN["refused"], **KNOWN["checked"]}
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
RINGS = {"session": -3, "user": -4, "user-session": -5}
LOGON = b"user"

# A program's first lines: `call` returns a system call's answer and its errno.
CALL = (
    "import ctypes, json, os, sys\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "def call(number, *values):\n"
    "  ctypes.set_errno(0)\n"
    "  answer = libc.syscall(*map(ctypes.c_long, (number, *values)))\n"
    "  return answer, ctypes.get_errno()\n"
)
# It looks for a key in each ring, asks the kernel to find it, and reads what it got.
LOOK = (
    "text = ctypes.create_string_buffer\n"
    "kind, name, room = text(b'user'), text(KEY.encode()), text(64)\n"
    "at = ctypes.addressof\n"
    "found = [call(KEYCTL, 10, ring, at(kind), at(name), 0)[0] for ring in (-3, -4, -5)]\n"
    "found.append(call(REQUEST_KEY, at(kind), at(name), 0, 0)[0])\n"
    "for key in found:\n"
    "  if key > 0: call(KEYCTL, 11, key, at(room), 64)\n"
    "print(found, room.value)\n"
)
PERL = (
    "my ($t, $d, $b) = ('user', $ARGV[0], qq(\\0) x 64);"
    "for my $ring (-3, -4, -5) { my $k = syscall($ARGV[1], 10, $ring, $t, $d, 0);"
    " syscall($ARGV[1], 11, $k, $b, 64) if $k > 0; }"
    "print 'read: ', $b;"
)


def run(work: Path, code: str, sandbox: Sandbox | None = None) -> ProcessResult:
    argv = [str(PYTHON), "-I", "-S", "-c", CALL + code]
    room = Surroundings(work, readable=(Path(sys.base_prefix),))
    return asyncio.run((sandbox or Sandbox.find()).run(argv, room, timeout_s=30))


def decision(rules: bytes, arch: int, number: int, *values: int) -> int:
    """The answer of a filter to one call; each value has 64 bits."""
    six = (*values, *(0,) * (6 - len(values)))
    data = struct.pack("=iIQ6Q", number, arch, 0, *six)
    steps = list(struct.iter_unpack("=HBBI", rules))
    at, loaded = 0, 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        if code == 0x20:
            (loaded,) = struct.unpack_from("=I", data, value)
        elif code == 0x06:
            return int(value)
        else:
            true = {0x15: loaded == value, 0x25: loaded > value, 0x45: bool(loaded & value)}[code]
            at += yes if true else no


def key_call(name: str, *values: Any) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    answer = libc.syscall(NUMBERS[name], *values)
    if answer < 0 and ctypes.get_errno() in (ENOSYS, EPERM):
        pytest.skip("this kernel has no key rings, or this container does not reach them")
    assert answer >= 0, os.strerror(ctypes.get_errno())
    return int(answer)


@pytest.fixture
def person() -> Iterator[ThreadPoolExecutor]:
    """A thread with the session of a person: its key ring links the user's, as after a login."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(key_call, "keyctl", 1, None).result()
        thread.submit(key_call, "keyctl", 8, RINGS["user"], RINGS["session"]).result()
        thread.submit(key_call, "keyctl", 8, RINGS["user-session"], RINGS["session"]).result()
        yield thread


@pytest.fixture(params=list(RINGS))
def key(person: ThreadPoolExecutor, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a key in one of the person's rings; it holds `topsecret`."""
    name = f"capdex-test-{os.getpid()}-{request.param}"
    ring = RINGS[request.param]
    serial = person.submit(
        key_call, "add_key", LOGON, name.encode(), b"topsecret", 9, ring
    ).result()
    yield name
    person.submit(key_call, "keyctl", 9, serial, ring).result()


def looks(key: str) -> str:
    numbers = f"KEYCTL, REQUEST_KEY = {NUMBERS['keyctl']}, {NUMBERS['request_key']}\n"
    return f"{numbers}KEY = {key!r}\n{LOOK}"


def test_the_person_s_thread_finds_the_key_that_programs_must_not_find(
    person: ThreadPoolExecutor, key: str
) -> None:
    argv = [str(PYTHON), "-I", "-S", "-c", CALL + looks(key)]
    said = person.submit(subprocess.run, argv, capture_output=True, check=True).result().stdout
    assert b"topsecret" in said


def test_a_program_finds_no_key_of_the_person(
    person: ThreadPoolExecutor, key: str, tmp_path: Path
) -> None:
    said = person.submit(run, tmp_path, looks(key)).result()
    assert said.stdout == b"[-1, -1, -1, -1] b''\n"


def test_perl_finds_no_key_of_the_person(
    person: ThreadPoolExecutor, key: str, tmp_path: Path
) -> None:
    perl = shutil.which("perl")
    if perl is None:
        pytest.skip("perl is not installed")
    argv = (perl, "-e", PERL, key, str(NUMBERS["keyctl"]))
    started = Sandbox.find().run(argv, Surroundings(tmp_path), timeout_s=30)
    said = person.submit(asyncio.run, started).result()
    assert said.stdout == b"read: " + bytes(64)


def test_a_program_reads_no_name_of_a_key(
    person: ThreadPoolExecutor, key: str, tmp_path: Path
) -> None:
    said = person.submit(run, tmp_path, "print(open('/proc/keys').read())").result()
    assert said.exit_code == 1
    assert key.encode() not in said.stdout


def bare(code: str, *, rules: bytes = b"") -> bytes:
    """What a program says in bubblewrap with a filter alone, or with nothing."""
    ends = os.pipe()
    os.write(ends[1], rules)
    os.close(ends[1])
    command = [str(Sandbox.find().bwrap), "--unshare-all", "--ro-bind", "/", "/"]
    command += ["--seccomp", str(ends[0])] if rules else []
    command += [str(PYTHON), "-I", "-S", "-c", CALL + code]
    said = subprocess.run(command, check=True, capture_output=True, pass_fds=ends[:1]).stdout
    os.close(ends[0])
    return said


def test_the_filter_alone_keeps_the_keys_of_the_person(
    person: ThreadPoolExecutor, key: str
) -> None:
    assert b"topsecret" in person.submit(bare, looks(key)).result()
    said = person.submit(bare, looks(key), rules=seccomp.rules()).result()
    assert said == b"[-1, -1, -1, -1] b''\n"


def test_the_own_key_ring_alone_keeps_the_keys_of_the_person(
    person: ThreadPoolExecutor, key: str, tmp_path: Path
) -> None:
    unfiltered = tmp_path / "bwrap"
    unfiltered.write_text(
        f"#!{PYTHON} -IS\nimport os, sys\nat = sys.argv.index('--seccomp')\n"
        f"program = {str(Sandbox.find().bwrap)!r}\n"
        "os.execv(program, [program, *sys.argv[1:at], *sys.argv[at + 2 :]])\n"
    )
    unfiltered.chmod(0o700)
    said = person.submit(run, tmp_path, looks(key), Sandbox(unfiltered)).result()
    assert said.exit_code == 0
    assert b"topsecret" not in said.stdout


def test_a_run_leaves_the_caller_its_session_key_ring(
    person: ThreadPoolExecutor, tmp_path: Path
) -> None:
    def ring() -> int:
        return person.submit(key_call, "keyctl", 0, RINGS["session"], 0).result()

    before = ring()
    person.submit(run, tmp_path, "").result()
    assert ring() == before


def test_calls_beyond_the_sandbox_are_answered_as_if_the_kernel_had_none(tmp_path: Path) -> None:
    numbers = KNOWN["refused"]
    # 0xFFFFFFFF: the descriptor that no process has.
    code = (
        f"print(json.dumps({{name: call(n, *[0xffffffff] * 6) for name, n in {numbers}.items()}}))"
    )
    said = run(tmp_path, code)
    assert json.loads(said.stdout) == {name: [-1, ENOSYS] for name in numbers}, said.stderr


def test_calls_newer_than_the_table_are_answered_by_an_older_kernel(tmp_path: Path) -> None:
    said = run(tmp_path, "print([call(n, 0) for n in (467, 470, 1000, 0x40000001, -1)])")
    assert said.stdout.decode() == f"{[(-1, ENOSYS)] * 5}\n"


@pytest.mark.parametrize(
    "flag",
    [0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000],
    ids=["mount", "cgroup", "uts", "ipc", "user", "pid", "net"],
)
def test_a_clone_gets_no_namespace(tmp_path: Path, flag: int) -> None:
    code = f"print(call({NUMBERS['clone']}, {flag} | 17, 0, 0, 0, 0))"
    assert run(tmp_path, code).stdout.decode() == f"{(-1, EPERM)}\n"


def test_a_program_may_clone_itself(tmp_path: Path) -> None:
    code = f"if not call({NUMBERS['clone']}, 17, 0, 0, 0, 0)[0]: os._exit(7)\nprint(os.wait()[1])"
    assert run(tmp_path, code).stdout == b"1792\n"


@pytest.mark.parametrize("command", [0x5412, 0x541C, 0x5412 | 1 << 32, 0x541C | 1 << 63])
def test_no_program_types_into_a_terminal(tmp_path: Path, command: int) -> None:
    code = (
        "import pty, termios\n"
        "main, sub = pty.openpty()\n"
        "print(termios.tcgetattr(sub)[0] > 0)\n"
        f"print(call({NUMBERS['ioctl']}, sub, {command} - (1 << 64) * ({command} >> 63), 0))"
    )
    assert run(tmp_path, code).stdout.decode() == f"True\n{(-1, EPERM)}\n"


def test_sockets_are_of_the_families_that_a_namespace_confines(tmp_path: Path) -> None:
    families = {"unix": 1, "inet": 2, "netlink": 16, "packet": 17, "alg": 38, "vsock": 40}
    opened = f"call({NUMBERS['socket']}, family, 2, 0)[1]"
    code = f"print(json.dumps({{name: {opened} for name, family in {families}.items()}}))"
    said = json.loads(run(tmp_path, code).stdout)
    assert said == {"inet": 0, "netlink": 0} | dict.fromkeys(
        ("unix", "packet", "alg", "vsock"), EAFNOSUPPORT
    )
    pair = "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))"
    assert run(tmp_path, pair).stdout == b"b'x'\n"


@pytest.mark.skipif(MACHINE != "x86_64", reason="the calls of i386 are of x86-64")
def test_a_call_of_i386_ends_the_program(tmp_path: Path) -> None:
    # mov eax, 20 (getpid); int 0x80; ret
    code = (
        "import mmap\n"
        "page = mmap.mmap(-1, 4096, prot=7)\n"
        "page.write(bytes.fromhex('b814000000cd80c3'))\n"
        "at = ctypes.addressof(ctypes.c_char.from_buffer(page))\n"
        "print(ctypes.CFUNCTYPE(ctypes.c_int)(at)(), flush=True)"
    )
    # A kernel without i386 ends it by SIGSEGV.
    ran = run(tmp_path, code)
    assert (ran.exit_code - 128 in (signal.SIGSYS, signal.SIGSEGV), ran.stdout) == (True, b"")


@pytest.mark.parametrize("machine", list(seccomp.MACHINES))
def test_the_filter_of_each_architecture_decides_alike(
    machine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    rules, known = seccomp.rules(), seccomp.MACHINES[machine]
    refused, checked = known["refused"], known["checked"]

    def answer(number: int, *values: int) -> int:
        return decision(rules, known["arch"], number, *values)

    assert {answer(number) for number in refused.values()} == {ERROR | ENOSYS}
    named = {*refused.values(), *checked.values()}
    assert {answer(number) for number in range(467) if number not in named} == {ALLOW}
    assert {answer(number) for number in (467, 0x40000000, 0x40000200, -1)} == {ERROR | ENOSYS}
    assert answer(checked["clone"], 0x3D0F00) == ALLOW  # a thread of libc
    assert answer(checked["clone"], 0x10000000 | 17) == ERROR | EPERM
    assert answer(checked["ioctl"], 0, 0x5401) == ALLOW
    assert answer(checked["ioctl"], 0, 0xFF_0000_5412) == ERROR | EPERM
    assert answer(checked["socket"], 10) == ALLOW
    assert answer(checked["socket"], 40) == ERROR | EAFNOSUPPORT
    others = {0xC000003E, 0xC00000B7, 0x40000003, 0x40000028} - {known["arch"]}
    assert {decision(rules, arch, 0) for arch in others} == {KILL}


@pytest.mark.parametrize("machine", list(HEADERS))
def test_the_numbers_are_those_of_the_kernel_s_headers(machine: str) -> None:
    if not HEADERS[machine].exists():
        pytest.skip("the kernel's headers are not installed")
    lines = HEADERS[machine].read_text()
    headers = {
        name: int(number)
        for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", lines)
    }
    known = seccomp.MACHINES[machine]
    ours = {**known["refused"], **known["checked"]}
    assert ours == {name: headers[name] for name in ours}
