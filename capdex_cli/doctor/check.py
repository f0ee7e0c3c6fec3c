"""A check of `capdex doctor`: its result, what it examines, and the time it may take."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, NamedTuple

from capdex.errors import CapdexError, UsageError
from capdex.net.http import HttpClient, HttpError
from capdex_cli.config.settings import Network, Settings
from capdex_cli.terminal.app import App

EACH_S: Final = 5.0  # a busy machine needs seconds for milliseconds of work


# Only `fail` makes the installation unhealthy; a check of `none` does not apply.
CheckStatus = Literal["ok", "warn", "fail", "none"]


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """The result of one check, and how to fix what is wrong."""

    name: str
    status: CheckStatus
    result: str
    fix: str = ""


@dataclass(slots=True)
class Subject:
    """The installation that is examined; `config_error` is why its settings are unreadable."""

    app: App
    settings: Settings
    config_error: UsageError | None
    http: HttpClient
    chain_id: int = 0  # as the RPC endpoint answered; 0 if it did not
    block_time: int = 0  # of its newest block, in seconds since 1970

    @property
    def network(self) -> Network:
        """The chosen network; one without settings if none is chosen.

        Without an rpc-url it has the first endpoint that a node would take.
        """
        network = self.settings.network or Network("")
        first, *_ = *os.environ.get("CAPDEX_RPC_URLS", "").split(), ""
        return network if network.rpc_url else replace(network, rpc_url=first)


class CheckRow(NamedTuple):
    """One row of a table of checks; `fix` is shown unless the result has one of its own.

    A check that `needs_rpc` does not apply where the RPC endpoint did not answer.
    """

    name: str
    examine: Callable[[Subject], DoctorCheck | Awaitable[DoctorCheck]]
    fix: str
    needs_rpc: bool = False


# The results: nothing wrong, what may fail later, what does not work, a check that does not apply.
ok: Final = partial(DoctorCheck, "", "ok")
warn: Final = partial(DoctorCheck, "", "warn")
fail: Final = partial(DoctorCheck, "", "fail")
none: Final = partial(DoctorCheck, "", "none")
NO_RPC: Final = none("needs an RPC endpoint")


async def run(row: CheckRow, subject: Subject) -> DoctorCheck:
    """Run one check; a timeout, an error of ours and one of a path is a failed check."""
    if row.needs_rpc and not subject.chain_id:
        return replace(NO_RPC, name=row.name)
    try:
        async with asyncio.timeout(EACH_S):
            result = row.examine(subject)
            check = await result if inspect.isawaitable(result) else result
    except TimeoutError:
        fix = "see that what is asked runs, is reachable and not busy; then try again"
        check = fail(f"no answer within {EACH_S:g} s", fix)
    except HttpError as error:
        check = fail(str(error))
    except CapdexError as error:
        check = fail(f"{error.message}: {error.why}" if error.why else error.message, error.fix)
    except OSError as error:
        check = fail(f"{error.filename}: {error.strerror}", "give a path that this user may use")
    wrong = check.status in ("warn", "fail")
    return replace(check, name=row.name, fix=(check.fix or row.fix) if wrong else "")
