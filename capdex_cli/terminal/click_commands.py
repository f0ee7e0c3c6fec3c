"""Click commands and groups of this program: global options anywhere, examples, lazy imports.

A command is a function `(app, …)` with click's parameters; its return value is its exit code. One
that is a coroutine is run to its end.
Nothing here imports a library of the product, so that `capdex --help` stays quick.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.core import augment_usage_errors
from click.decorators import FC

from capdex.errors import UsageError
from capdex_cli.terminal.app import App
from capdex_cli.terminal.errors import guard
from capdex_cli.terminal.output import Format

CONTEXT: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
    "show_default": True,
}


def _set_global(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep the value of a global option wherever it was typed; the last one wins."""
    typed = ctx.get_parameter_source(param.name or "") is click.ParameterSource.COMMANDLINE
    if not typed or ctx.resilient_parsing:
        return
    options = ctx.find_root().ensure_object(App).options
    if param.name in ("json", "plain", "format"):
        options.format = Format(value if param.name == "format" else param.name)
    elif param.name in ("quiet", "verbose"):
        options.verbosity += value if param.name == "verbose" else -1
    elif param.name == "config":
        options.config += tuple(value)
    elif param.name in ("rpc_url", "registry"):
        options.config += (f"{param.opts[0].removeprefix('--')}={value}",)
    else:
        setattr(options, str(param.name), value)


def _complete_network(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    from capdex_cli.config.load import network_names

    return [name for name in network_names() if name.startswith(typed)]


def _global(*names: str, **attributes: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_set_global, **attributes)


GLOBALS: tuple[click.Option, ...] = (
    _global("--json", is_flag=True, help="Write the result as one JSON document."),
    _global("--plain", is_flag=True, help="Write the values alone, one a line."),
    _global(
        "--format",
        type=click.Choice([str(item) for item in Format]),
        help="Format of the result.  [default: human on a terminal, else jsonl; json for agents]",
    ),
    _global(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        help="Colour; auto obeys NO_COLOR and FORCE_COLOR.  [default: auto]",
    ),
    _global("-q", "--quiet", is_flag=True, help="Show results, warnings and errors only."),
    _global("-v", "--verbose", count=True, show_default=False, help="Show details of each step."),
    _global("--debug", is_flag=True, help="Show tracebacks."),
    _global(
        "--network",
        metavar="NAME",
        shell_complete=_complete_network,
        help="Network to use.  [env var: CAPDEX_NETWORK]",
    ),
    _global(
        "--config",
        multiple=True,
        metavar="FILE|KEY=VALUE",
        help="Read this file instead of the usual two, or set one key.",
    ),
    _global("--rpc-url", metavar="URL", help="Chain endpoint.  [env var: CAPDEX_RPC_URL]"),
    _global("--registry", metavar="ADDRESS", help="Registry.  [env var: CAPDEX_REGISTRY]"),
    _global("--no-input", is_flag=True, help="Never ask; stop where an answer is needed (exit 4)."),
    _global("-y", "--yes", is_flag=True, help="Agree to the plan. Never raises the fee cap."),
)


def together(*options: Callable[[FC], FC]) -> Callable[[FC], FC]:
    """Return what adds several options to a command, in this order."""
    return lambda function: functools.reduce(lambda x, add: add(x), reversed(options), function)


def hash(typed: str) -> bytes:
    """Return a hash of 32 bytes, typed as 0x and 64 hexadecimal digits."""
    if not re.fullmatch("0x[0-9a-fA-F]{64}", typed):
        raise UsageError(f"{typed[:80]!r} is not a hash", fix="write 0x and 64 hexadecimal digits")
    return bytes.fromhex(typed[2:])


def text(typed: str) -> str:
    """Return a text for a file, a node or a chain: typed in UTF-8, whatever the locale."""
    try:
        return os.fsencode(typed).decode("utf-8")
    except UnicodeError:
        message = f"{typed[:80]!r} has bytes that are not UTF-8"
        raise UsageError(message, fix="type it again, in UTF-8") from None


class _File(click.Path):
    """A file that needs a name: `-`, which is a stream elsewhere, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail("a stream cannot be used here: give the name of a file", param, ctx)
        return super().convert(value, param, ctx)


class _Number(click.FloatRange):
    """A number in a range. NaN, which is neither below nor above one, is in none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        return number if number == number else self.fail(f"{value} is not a number.", param, ctx)


HASH, NUMBER, TEXT = hash, _Number, text  # types of click, whose help has their names
FILE = _File(path_type=Path)
SECONDS = NUMBER(0.01, 3600)  # below it a wait is a busy loop
FILE_NAME = click.Path(allow_dash=True)  # a text; shells complete it by their files
DIRECTORY = click.Path(path_type=Path, file_okay=False)


class Command(click.Command):
    """A command with examples that also accepts the global options."""

    def __init__(self, *args: Any, examples: Sequence[str], **kwargs: Any) -> None:
        kwargs["context_settings"] = CONTEXT | (kwargs.get("context_settings") or {})
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse, and say in an error of the parser which command it is about."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return its own parameters, then each global option whose name is not among them."""
        own = super().get_params(ctx)
        taken = {name for param in own for name in param.opts}
        return [*own, *(option for option in GLOBALS if not taken & set(option.opts))]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write its own options, and one line about the global ones."""
        own = [*self.params, self.get_help_option(ctx)]
        rows = [p.get_help_record(ctx) for p in own if isinstance(p, click.Option)]
        with formatter.section("Options"):
            formatter.write_dl([row for row in rows if row])
        formatter.write_paragraph()
        formatter.write_text("Global options (--json, --network, --yes, …): capdex --help")

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they would be typed."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}$ {example}\n")


class Entry(NamedTuple):
    """A command that is not imported yet: its section, its module and its purpose."""

    section: str
    module: str
    purpose: str


class Group(Command, click.Group):
    """Commands in sections: imported ones (`commands`), or `entries` imported when called."""

    def __init__(
        self, *args: Any, entries: Mapping[str, Entry] | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.entries = entries or {
            name: Entry("Commands", "", (each.help or "").strip().split(".")[0])
            for name, each in self.commands.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of their sections."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the command `NAME_command` of the entry's module."""
        if name not in self.commands and name in self.entries:
            module = importlib.import_module(self.entries[name].module)
            self.commands[name] = getattr(module, f"{name}_command".replace("-", "_"))
        return self.commands.get(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, and suggest commands that are not imported, too."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=self.entries, ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, without importing one; then the group's own options."""
        for section in dict.fromkeys(entry.section for entry in self.entries.values()):
            rows = [(n, e.purpose) for n, e in self.entries.items() if e.section == section]
            with formatter.section(section):
                formatter.write_dl(rows, col_spacing=4)
        if ctx.parent is None:
            click.Command.format_options(self, ctx, formatter)
        elif self.invoke_without_command:
            super().format_options(ctx, formatter)


def command(
    name: str, *, examples: Sequence[str], **attributes: object
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function whose first parameter is the `App`."""
    made = click.command(name, cls=Command, examples=examples, **attributes)

    def make(function: Callable[..., Any]) -> Command:
        @functools.wraps(function)
        def run(app: App, **options: object) -> object:
            result = function(app, **options)
            return app.run(result) if isinstance(result, Coroutine) else result

        return made(click.pass_obj(run))

    return make


def run_group(name: str, **attributes: object) -> Callable[[Callable[..., Any]], Group]:
    """Make a group of a function like a command's: it runs when no subcommand is given."""

    def make(function: Callable[..., Any]) -> Group:
        @functools.wraps(function)
        def run(*args: object, **options: object) -> object:
            alone = click.get_current_context().invoked_subcommand is None
            return function(*args, **options) if alone else None

        more = {"invoke_without_command": True, "subcommand_metavar": "[COMMAND [ARGS]...]"}
        return click.group(name, Group, **attributes, **more)(click.pass_obj(run))

    return make


class Program(Group):
    """The whole command line: the only place that catches exceptions and exits."""

    def main(self, args: Sequence[str] | None = None, **_: object) -> Any:  # type: ignore[override]
        """Run, then exit with the code of the result or error; no more of click's is needed."""
        arguments = tuple(sys.argv[1:] if args is None else args)
        instruction = os.environ.get("_CAPDEX_COMPLETE")
        if instruction:
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(self, {}, "capdex", "_CAPDEX_COMPLETE", instruction))
        app = App()
        sys.exit(
            guard(
                lambda: self._call(app, arguments),
                lambda: app.error_output(arguments),
                debug="--debug" in arguments,
            )
        )

    def _call(self, app: App, arguments: tuple[str, ...]) -> object:
        with self.make_context("capdex", list(arguments), obj=app) as ctx:
            return self.invoke(ctx)
