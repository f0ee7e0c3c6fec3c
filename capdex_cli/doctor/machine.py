"""Checks of this machine: programs, configuration, key files, disk."""

from __future__ import annotations

import os
import platform
import shutil
import stat
import sys
from typing import Final

from capdex.errors import UsageError
from capdex_cli.config.load import PROXIES, unused_variables
from capdex_cli.config.settings import user_directories
from capdex_cli.config.sources import configuration_files
from capdex_cli.doctor.check import CheckRow, DoctorCheck, Subject, fail, none, ok, warn
from capdex_cli.publish.account import author_path, keystore_path

LOW_BYTES: Final = 1 << 30  # the index and the packages of a node need more within weeks
EMPTY_BYTES: Final = 50 << 20  # a journal, a lock and an upload fit; little else does


def python(_: Subject) -> DoctorCheck:
    """Examine the interpreter's version."""
    version = platform.python_version()
    if sys.version_info >= (3, 15):
        return warn(f"{version} is newer than what is tested")
    return ok(version)


def anvil(_: Subject) -> DoctorCheck:
    """Look for Anvil, the chain of `capdex up`."""
    from capdex_cli.devnet.anvil import can_fetch, fetched_anvil
    from capdex_publisher.ethereum.anvil import find_anvil

    try:
        program = find_anvil(fetched_anvil())
    except UsageError as error:
        if can_fetch():
            return none("`capdex up` fetches it when it is first needed")
        return warn("not found; only `capdex up` needs it", error.fix)
    return ok(str(program)) if os.access(program, os.X_OK) else fail(f"{program} cannot be run")


def disk(_: Subject) -> DoctorCheck:
    """Examine the directory of locks and journals: it must be writable and have space."""
    state = user_directories().state
    existing = next(path for path in (state, *state.parents) if path.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        return fail(f"{existing} cannot be written", "correct its permissions, or set CAPDEX_HOME")
    free = shutil.disk_usage(existing).free
    result = f"{free / (1 << 30):.1f} GiB free at {existing}"
    if free < EMPTY_BYTES:
        return fail(result)
    return warn(f"{result}; a node needs more") if free < LOW_BYTES else ok(result)


def configuration(subject: Subject) -> DoctorCheck:
    """Examine the configuration files, and the variables that look like settings."""
    error = subject.config_error
    if error is not None:
        why = f" ({error.why})" if error.why else ""
        return fail(f"{error.message}{why}", error.fix)
    if unused := unused_variables(os.environ):
        return warn("; ".join(unused), "unset it, or correct its name")
    files = [str(path) for path in configuration_files().values() if path.is_file()]
    return ok(", ".join(files) or "no configuration file")


def keys(subject: Subject) -> DoctorCheck:
    """Examine who can access the files with secrets."""
    if subject.config_error is not None:
        return none("needs the settings")
    settings, private = subject.settings, []
    files = {
        "keystore": (keystore_path(subject.app), settings.keystore),
        "author-key": (author_path(subject.app), settings.author_key),
        "passphrase-file": (settings.passphrase_file, settings.passphrase_file),
    }
    for kind, (path, configured) in files.items():
        if path is None:
            continue
        try:
            about = path.stat()
        except OSError as error:
            if configured:
                why = (error.strerror or "cannot be read").lower()
                return fail(f"the {kind} {path}: {why}", f"correct {kind}, or unset it")
            continue
        mode = stat.S_IMODE(about.st_mode)
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            return fail(f"{path} has mode {mode:04o}: others can access it", f"chmod 600 {path}")
        if about.st_uid != os.geteuid():
            return fail(f"{path} belongs to another user", f"chown {os.geteuid()} {path}")
        private.append(kind)
    for name in ("CAPDEX_PRIVATE_KEY", "CAPDEX_PASSPHRASE"):
        if os.environ.get(name):
            return warn(f"{name} is set: your other programs can read it")
    if private:
        return ok(f"{', '.join(private)}: only you can access them")
    if settings.signer:
        return none("an external signer has them")
    return none("there are none; capdex account new makes one")


def proxy(_: Subject) -> DoctorCheck:
    """Examine which proxy a request by https goes through."""
    from capdex.net.connection import proxy_of

    if way := proxy_of("https://far.example"):
        return ok(f"https goes through {way.rpartition('@')[2].removeprefix('http://')}")
    if set(PROXIES) & os.environ.keys():
        return none("https goes directly, as the variables of the environment say")
    return none("the environment names none")


CHECKS: Final = (
    CheckRow("Python", python, "use Python 3.11 to 3.14"),
    CheckRow("Anvil", anvil, "correct CAPDEX_ANVIL, or unset it"),
    CheckRow("disk", disk, "free some space, or set CAPDEX_HOME to a larger disk"),
    CheckRow("proxy", proxy, "correct https_proxy and no_proxy"),
    CheckRow("settings", configuration, "see capdex help environment"),
    CheckRow("keys", keys, "use a key file and --passphrase-file, or an external signer"),
)
