"""What every command is given: options, output and settings, each made when first used."""

from __future__ import annotations

import os
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from cli.terminal.output import Format, Output

if TYPE_CHECKING:
    from cli.config.settings import Settings
    from publisher.keys.secret import Secret
    from publisher.keys.signer import Signer

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
    """One call of `capdex`."""

    options: Options = field(default_factory=Options)
    passphrase_fd: int | None = None
    secrets: dict[int, Secret] = field(default_factory=dict, repr=False)  # by file descriptor
    signer: Signer | None = None  # opened once

    @cached_property
    def output(self) -> Output:
        """Where words go. Asked first by the command itself, when every option was read."""
        typed = self.options
        return Output.open(typed.format, typed.color, typed.verbosity)

    @cached_property
    def settings(self) -> Settings:
        """The configuration; a live `capdex up` is named once."""
        from cli.config.load import load, unused_variables

        found = load(network=self.options.network, overrides=self.options.config)
        for words in unused_variables(os.environ):
            self.output.warn(words)
        if found.up is not None and self.options.network is None:
            self.output.say(self.output.err.dim(f"using the local network of {found.up}"))
        return found

    @property
    def may_ask(self) -> bool:
        """Whether a person can answer: both ends are terminals and nothing forbids it."""
        import sys

        forbidden = self.options.no_input or os.environ.get("CI")
        return not forbidden and sys.stdin.isatty() and sys.stderr.isatty()

    def error_output(self, arguments: Sequence[str]) -> Output:
        """The output for an error, also when the options could not be read to their end."""
        asked = self.options.format
        if asked is None and ("--json" in arguments or "--format=json" in arguments):
            asked = Format.JSON
        return Output.open(asked, self.options.color, self.options.verbosity)

    def run(self, work: Coroutine[object, object, T]) -> T:
        """Run one coroutine to its end."""
        import asyncio

        return asyncio.run(work)
