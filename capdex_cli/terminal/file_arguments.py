"""Files named on the command line: `-` for a stream, `@list` for a list of names, sizes bounded."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from capdex.errors import CapdexError, Code, UsageError
from capdex.limits import MAX_PACKAGE_BYTES
from capdex.net.files import overwriting
from capdex_cli.terminal.app import App
from capdex_cli.terminal.errors import show

if TYPE_CHECKING:
    from capdex_publisher.authoring.validate import PackageFile


def expand(names: Iterable[str]) -> list[str]:
    """Replace each `@list` by the lines of that file, without empty lines and # comments."""
    expanded: list[str] = []
    for name in names:
        if not name.startswith("@"):
            expanded.append(name)
            continue
        try:
            lines = Path(name[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(name[1:], error) from None
        expanded += [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return expanded


def read(name: str, most_bytes: int = MAX_PACKAGE_BYTES) -> bytes:
    """Read a file or stdin (`-`), at most one byte more than the limit (of a package).

    The parser then refuses a longer file as TOO_LARGE. Raises UsageError UNREADABLE.
    """
    try:
        if name == "-":
            return sys.stdin.buffer.read(most_bytes + 1)
        with Path(name).open("rb") as file:
            return file.read(most_bytes + 1)
    except OSError as error:
        raise _unreadable(name, error) from None


def package_file(name: str, folder: Path | None = None) -> PackageFile:
    """Read a package; its files are in `folder`, or beside it, and not known for stdin (`-`)."""
    from capdex_publisher.authoring.validate import PackageFile

    return PackageFile(name, read(name), None if name == "-" else Path(name), folder)


@contextmanager
def telling(app: App, name: str, codes: list[int], of: type[CapdexError]) -> Iterator[None]:
    """Show an error about one of several files, with the file's name; append its exit code."""
    try:
        yield
    except of as error:
        if error.code is Code.INVALID_INPUT:
            fix = error.fix.replace("FILE", shlex.quote(name))
            error = replace(error, message=f"{name}: {error.message}", fix=fix)
        codes.append(show(error, app.output))


def write(name: str, data: bytes) -> None:
    """Write a file whole, or stdout (`-`); raises UsageError UNREADABLE."""
    if name != "-":
        with overwriting(Path(name)) as file:
            file.write(data)
        return
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def _unreadable(name: str, error: OSError | UnicodeDecodeError) -> UsageError:
    why = error.strerror or "" if isinstance(error, OSError) else "it is not UTF-8"
    why = why if name else "the name of the file is empty"
    meant = f"{name}.acp.yaml"  # as `init` writes it
    found = os.path.isfile(meant)  # noqa: PTH113 - of pathlib, it raises where nobody may look
    fix = f"did you mean {meant}?" if found else "check the path"
    return UsageError(f"cannot read {name or repr(name)}", Code.UNREADABLE, why=why, fix=fix)
