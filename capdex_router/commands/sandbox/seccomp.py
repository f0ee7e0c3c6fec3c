"""What a sandboxed program may ask of the kernel: a seccomp filter, and a key ring of its own.

A call that is refused whole (`system_calls.json`) answers ENOSYS, as on a kernel without it: libc
and programs then do what they did before that call existed, where EPERM would end many of them. A
refused argument answers what the kernel tells an account that lacks the right.
"""

from __future__ import annotations

import ctypes
import platform
import struct
from errno import EAFNOSUPPORT, ENOSYS, EPERM
from importlib.resources import files
from typing import Final

import orjson

MACHINES: Final = orjson.loads(
    (files("capdex_router.commands.sandbox") / "system_calls.json").read_bytes()
)
_NEWEST: Final = 466  # of Linux 6.13; newer calls are not known here, and x32's are far above
_LOAD, _EQUAL, _ABOVE, _ANY, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06  # operations of BPF
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_CHECKED: Final = (  # call, argument, the test that refuses it, error
    ("clone", 0, _ANY, 0x7E020000, EPERM),  # a new namespace
    ("ioctl", 1, _EQUAL, 0x5412, EPERM),  # TIOCSTI, which types into a terminal
    ("ioctl", 1, _EQUAL, 0x541C, EPERM),  # TIOCLINUX, which pastes into one
    ("socket", 0, _EQUAL, 1, EAFNOSUPPORT),  # unix: the work directory may hold one; pairs work
    ("socket", 0, _ABOVE, 16, EAFNOSUPPORT),  # after netlink; vsock reaches out of the namespace
)


def rules() -> bytes:
    """Return the filter for this machine, one of MACHINES, as an array of `struct sock_filter`."""
    known = MACHINES[platform.machine()]
    steps = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, known["arch"]),
        (_RETURN, 0, 0, _KILL),  # a program of another architecture: its numbers mean other calls
        (_LOAD, 0, 0, 0),
        (_ABOVE, 0, 1, _NEWEST),
        (_RETURN, 0, 0, _ERROR | ENOSYS),
    ]
    for number in known["refused"].values():
        steps += ((_EQUAL, 0, 1, number), (_RETURN, 0, 0, _ERROR | ENOSYS))
    for call, argument, test, value, error in _CHECKED:
        steps += (
            (_EQUAL, 0, 4, known["checked"][call]),
            (_LOAD, 0, 0, 16 + 8 * argument),  # the lower half, which is what the kernel reads
            (test, 0, 1, value),
            (_RETURN, 0, 0, _ERROR | error),
            (_LOAD, 0, 0, 0),
        )
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def join_key_ring() -> None:
    """Give this thread, and what it starts, a new session key ring in place of the person's."""
    # Where the kernel refuses or has no key rings, the program does not get to one either.
    ctypes.CDLL(None).syscall(MACHINES[platform.machine()]["refused"]["keyctl"], 1, None)
