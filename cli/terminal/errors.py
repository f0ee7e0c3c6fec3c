"""The one place where an exception becomes words and an exit code.

Three lines on stderr: what happened, why, what to type next. When JSON was asked for by name
(`--json`, `--format json|jsonl`) the error is one JSON object on stderr instead, schema
`capdex.error/1`; stdout then holds results alone, whatever happens.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterable

import click

from capdex.errors import KINDS, CapdexError, Code, UsageError
from cli.terminal.output import Format, Output
from cli.terminal.text import json_safe, safe

OK, NO, USAGE, UNAVAILABLE, REFUSED, INTERNAL = 0, 1, 2, 3, 4, 70
INTERRUPTED = 130
BROKEN_PIPE = 141  # whoever read stdout has gone

_WEIGHT = (OK, NO, UNAVAILABLE, REFUSED, USAGE, INTERNAL)


def worst(codes: Iterable[int]) -> int:
    """The exit code of several results: 70 > 2 > 4 > 3 > 1 > 0."""
    return max(codes, key=_WEIGHT.index, default=OK)


def exit_code(error: CapdexError) -> int:
    """The exit code of one error, by its code's row in the table."""
    return KINDS[error.code].exit


def guard(run: Callable[[], object], output: Callable[[], Output], *, debug: bool) -> int:
    """Call `run` and turn whatever comes out of it into an exit code.

    `output` is asked only when there is an error to show: options may still be unread.
    """
    try:
        result = run()
        sys.stdout.flush()
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as wish:
        output().err.write(wish.format_message())
        return USAGE
    except click.ClickException as error:
        return show(from_click(error), output())
    except CapdexError as error:
        if debug:
            traceback.print_exc()
        return show(error, output())
    except (KeyboardInterrupt, click.Abort, EOFError):
        output().err.write("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_stdout()
        return BROKEN_PIPE
    except Exception as error:  # noqa: BLE001 - the last line of defence
        return _unexpected(error, output(), debug=debug)
    return result if isinstance(result, int) else OK


def show(error: CapdexError, output: Output) -> int:
    """Write one error; returns its exit code."""
    if output.format in (Format.JSON, Format.JSONL) and output.explicit:
        document = {"schema": "capdex.error/1", **error.to_json(), "exit": exit_code(error)}
        output.err.write(json_safe(json.dumps(document, ensure_ascii=False)))
    else:
        for line in lines(error, output):
            output.err.write(line)
    output.err.file.flush()
    return exit_code(error)


def lines(error: CapdexError, output: Output) -> list[str]:
    """The error as people read it."""
    style = output.err.style
    shown = [f"{style(f'error[{error.code}]', 'red', bold=True)}: {safe(error.message)}"]
    if error.why:
        shown.append(f"  {style('why', bold=True)}: {safe(error.why)}")
    if error.fix:
        shown.append(f"  {style('fix', bold=True)}: {safe(error.fix)}")
    if error.code not in (Code.USAGE, Code.INTERNAL):
        shown.append(f"  {style('more', bold=True)}: capdex explain {error.code}")
    return shown


def from_click(error: click.ClickException) -> UsageError:
    """A mistake in the call, in our words and with its hint as the fix."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "capdex"
    if isinstance(error, click.FileError):
        return UsageError(error.format_message(), Code.UNREADABLE, fix="check the path")
    message, fix = error.format_message(), ""
    near = getattr(error, "possibilities", None)
    if isinstance(error, click.NoSuchCommand | click.NoSuchOption):
        message = error.message
        if near:
            fix = f"did you mean {' or '.join(near)}? "
    return UsageError(message, fix=f"{fix}{path} --help lists what there is")


def _unexpected(error: Exception, output: Output, *, debug: bool) -> int:
    """A fault of ours: one line, where the report lies, exit 70."""
    text = "".join(traceback.format_exception(error))
    if debug:
        sys.stderr.write(text)
    report = _save_report(text)
    return show(
        UsageError(
            f"unexpected {type(error).__name__}: {safe(error)[:200]}",
            Code.INTERNAL,
            why="this is a fault of capdex, not of yours",
            fix=f"report it with {report}" if report else "run again with --debug and report it",
        ),
        output,
    )


def _save_report(text: str) -> str | None:
    """Keep a traceback under the state directory (0600); None when that is impossible."""
    try:
        import time

        from capdex import __version__
        from cli.config.directories import user_directories

        folder = user_directories().state / "reports"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as f:
            f.write(f"capdex {__version__}, Python {sys.version}\n\n{text}")
    except OSError:
        return None
    return str(path)


def _drop_stdout() -> None:
    """Keep Python from complaining about the broken pipe once more at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
