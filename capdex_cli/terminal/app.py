"""The state of one call that every command receives: options, output and settings."""

from __future__ import annotations

import os
import sys
from collections.abc import Coroutine, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from capdex_cli.terminal.output import Format, Output, for_agent

if TYPE_CHECKING:
    from capdex_cli.config.settings import Settings
    from capdex_publisher.keys.secret import Secret
    from capdex_publisher.keys.signer import Signer

T = TypeVar("T")


@dataclass(slots=True)
class Options:
    """The global options as typed."""

    format: Format | None = None
    color: str = "auto"
    verbosity: int = 0
    debug: bool = False
    network: str | None = None
    config: tuple[str, ...] = ()
    no_input: bool = False
    yes: bool = False


@dataclass
class App:
    """State of one call of `capdex`; output and settings are opened when first used."""

    options: Options = field(default_factory=Options)
    passphrase_fd: int | None = None
    secrets: dict[int, Secret] = field(default_factory=dict, repr=False)  # by file descriptor
    signer: Signer | None = None  # opened at most once

    @cached_property
    def output(self) -> Output:
        """The output; first used when every option is read."""
        return self.error_output(())

    @cached_property
    def settings(self) -> Settings:
        """The configuration; says once if it is that of a running `capdex up`."""
        from capdex_cli.config.load import load, unused_variables

        settings = load(network=self.options.network, overrides=self.options.config)
        for warning in unused_variables(os.environ):
            self.output.warn(warning)
        if settings.up is not None and self.options.network is None:
            self.output.say(self.output.err.dim(f"using the local network of {settings.up}"))
        return settings

    @property
    def may_ask(self) -> bool:
        """True if questions can be asked: stdin and stderr are terminals, no CI, no agent."""
        forbidden = self.options.no_input or os.environ.get("CI") or for_agent(os.environ)
        return not forbidden and sys.stdin.isatty() and sys.stderr.isatty()

    def error_output(self, arguments: Sequence[str]) -> Output:
        """Return the output for an error, also if not all options could be read."""
        typed = {*arguments, *map("=".join, pairwise(arguments))}
        asked = typed & {"--json", "--format=json", "--format=jsonl"}
        form = self.options.format or (Format.JSON if asked else None)
        return Output.open(form, self.options.color, self.options.verbosity)

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run one coroutine to its end and return its result."""
        with closing(work):  # it may be interrupted before it is awaited
            import asyncio

            return asyncio.run(work)
