"""The house style of the command line: lazily loaded sections, examples, options accepted anywhere.

A command is a function of `(app, …)` with click's parameters; what it returns is its exit code.
Nothing here imports a room: `capdex --help` must stay quick.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from cli.terminal.app import App
from cli.terminal.errors import guard
from cli.terminal.output import Format

CONTEXT: dict[str, Any] = {
    "help_option_names": ["-h", "--help"],
    "max_content_width": 100,
    "show_default": True,
}


def _remember(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Keep a global option where it was typed; the last one typed wins."""
    typed = ctx.get_parameter_source(param.name or "") is click.ParameterSource.COMMANDLINE
    if typed and not ctx.resilient_parsing:
        app = ctx.find_root().ensure_object(App)
        if param.name in ("json", "plain"):
            app.options.format = Format(param.name)
        elif param.name == "format":
            app.options.format = Format(value)
        elif param.name in ("quiet", "verbose"):
            app.options.verbosity += value if param.name == "verbose" else -1
        elif param.name == "config":
            app.options.config += tuple(value)
        elif param.name in ("rpc_url", "registry"):
            app.options.config += (f"{param.opts[0].removeprefix('--')}={value}",)
        else:
            setattr(app.options, str(param.name), value)


def _networks(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    from cli.config.load import network_names

    return [name for name in network_names() if name.startswith(typed)]


def _global(*names: str, **attributes: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_remember, **attributes)


GLOBALS: tuple[click.Option, ...] = (
    _global("--json", is_flag=True, help="The result as one JSON document."),
    _global("--plain", is_flag=True, help="The values alone, one a line."),
    _global(
        "--format",
        type=click.Choice([str(item) for item in Format]),
        help="How results are written; into a pipe it is jsonl by itself.",
    ),
    _global(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        help="Colour; NO_COLOR and FORCE_COLOR are heard too.  [default: auto]",
    ),
    _global("-q", "--quiet", is_flag=True, help="Results, warnings and errors only."),
    _global("-v", "--verbose", count=True, show_default=False, help="Say more about each step."),
    _global("--debug", is_flag=True, help="Show tracebacks."),
    _global(
        "--network",
        metavar="NAME",
        shell_complete=_networks,
        help="The network to use.  [env var: CAPDEX_NETWORK]",
    ),
    _global(
        "--config",
        multiple=True,
        metavar="FILE|KEY=VALUE",
        help="Read this file instead of the usual two, or set one key.",
    ),
    _global("--rpc-url", metavar="URL", help="The chain endpoint.  [env var: CAPDEX_RPC_URL]"),
    _global("--registry", metavar="ADDRESS", help="The registry.  [env var: CAPDEX_REGISTRY]"),
    _global("--no-input", is_flag=True, help="Never ask; without an answer, stop (exit 4)."),
    _global("-y", "--yes", is_flag=True, help="Say yes to the plan. Never raises the fee cap."),
)


class Command(click.Command):
    """A command with examples, which takes the global options too."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        kwargs["context_settings"] = CONTEXT | (kwargs.get("context_settings") or {})
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters, then every global option whose name it does not take itself."""
        return _with_globals(super().get_params(ctx))

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Its own options; the global ones in one line."""
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples, as one would type them."""
        write_examples(formatter, self.examples)


def write_options(
    command: click.Command, ctx: click.Context, formatter: click.HelpFormatter
) -> None:
    """The Options block of a command, with the global ones in one line."""
    own = [*command.params, command.get_help_option(ctx)]
    rows = [p.get_help_record(ctx) for p in own if isinstance(p, click.Option)]
    with formatter.section("Options"):
        formatter.write_dl([row for row in rows if row])
    formatter.write_paragraph()
    formatter.write_text("Global options (--json, --network, --yes, …): capdex --help")


def _with_globals(own: list[click.Parameter]) -> list[click.Parameter]:
    taken = {name for param in own for name in param.opts}
    return [*own, *(option for option in GLOBALS if not taken & set(option.opts))]


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """The Examples block."""
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}$ {example}\n")


def command(
    name: str, *, examples: Sequence[str], **attributes: Any
) -> Callable[[Callable[..., Any]], Command]:
    """Make a command of a function whose first parameter is the `App`."""

    def make(function: Callable[..., Any]) -> Command:
        wrapped = click.pass_obj(function)
        return click.command(name, cls=Command, examples=examples, **attributes)(wrapped)

    return make


class Entry(NamedTuple):
    """A command not imported yet: where it is and what it does."""

    section: str
    module: str
    purpose: str


class Group(click.Group):
    """Commands in sections, each imported when it is called."""

    def __init__(self, *args: Any, entries: dict[str, Entry], **kwargs: Any) -> None:
        kwargs["context_settings"] = CONTEXT | (kwargs.get("context_settings") or {})
        self.examples: tuple[str, ...] = tuple(kwargs.pop("examples", ()))
        super().__init__(*args, **kwargs)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of their sections."""
        return list(self.entries)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Import the module of the command, where it is called `NAME_command`."""
        if name not in self.commands and name in self.entries:
            module = importlib.import_module(self.entries[name].module)
            found = getattr(module, f"{name}_command".replace("-", "_"))
            self.commands[name] = found
        return self.commands.get(name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with suggestions among commands that were not imported."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=self.entries, ctx=ctx)
        return super().resolve_command(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own parameters and the global options."""
        return _with_globals(super().get_params(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by section, without importing one."""
        for section in dict.fromkeys(entry.section for entry in self.entries.values()):
            rows = [(n, e.purpose) for n, e in self.entries.items() if e.section == section]
            with formatter.section(section):
                formatter.write_dl(rows, col_spacing=4)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands first, then the options."""
        self.format_commands(ctx, formatter)
        if ctx.parent is None:
            click.Command.format_options(self, ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples."""
        write_examples(formatter, self.examples)


class RunGroup(Group):
    """A command with options and examples of its own, which has subcommands beside it."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The subcommands, then what the command itself takes."""
        self.format_commands(ctx, formatter)
        write_options(self, ctx, formatter)


def run_group(
    name: str, *, entries: dict[str, Entry], examples: Sequence[str]
) -> Callable[[Callable[..., Any]], RunGroup]:
    """Make a group of a function like a command's: it runs when no subcommand is given."""

    def make(function: Callable[..., Any]) -> RunGroup:
        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> object:
            alone = click.get_current_context().invoked_subcommand is None
            return function(*args, **options) if alone else None

        return click.command(
            name,
            cls=RunGroup,
            entries=entries,
            examples=examples,
            invoke_without_command=True,
            subcommand_metavar="[COMMAND [ARGS]...]",
        )(click.pass_obj(run))

    return make


class Program(Group):
    """The whole command line: the one place that catches and exits."""

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> Any:  # type: ignore[override]
        """Run and exit with the code of the table; `extra` goes to the context."""
        arguments = list(sys.argv[1:] if args is None else args)
        instruction = os.environ.get("_CAPDEX_COMPLETE")
        if instruction:
            from click.shell_completion import shell_complete

            sys.exit(shell_complete(self, {}, "capdex", "_CAPDEX_COMPLETE", instruction))
        app = App()
        sys.exit(
            guard(
                lambda: self._call(app, arguments, extra),
                lambda: app.error_output(arguments),
                debug="--debug" in arguments,
            )
        )

    def _call(self, app: App, arguments: list[str], extra: dict[str, Any]) -> object:
        extra = {k: v for k, v in extra.items() if k not in ("prog_name", "standalone_mode")}
        with self.make_context("capdex", arguments, obj=app, **extra) as ctx:
            return self.invoke(ctx)


def signature_of(found: click.Command) -> list[str]:
    """The parameter names of a command's function, without the app: tests compare them."""
    function = inspect.unwrap(found.callback) if found.callback else None
    return [] if function is None else list(inspect.signature(function).parameters)[1:]
