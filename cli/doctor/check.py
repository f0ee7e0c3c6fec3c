"""One finding of `capdex doctor`, and the bounds within which it is made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from capdex.errors import CapdexError
from cli.doctor.probe import Trouble

EACH_S: Final = 2.0  # two after one another, and starting, stay within five seconds


class Status(StrEnum):
    """How a check ended; only `fail` makes the doctor's verdict bad."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    NONE = "none"  # it does not apply


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, what was found, and how to mend it where it needs mending."""

    name: str
    status: Status
    result: str
    fix: str = ""


def ok(name: str, result: str) -> Check:
    """All is well."""
    return Check(name, Status.OK, result)


def warn(name: str, result: str, fix: str) -> Check:
    """Something may go wrong later."""
    return Check(name, Status.WARN, result, fix)


def fail(name: str, result: str, fix: str) -> Check:
    """Something does not work."""
    return Check(name, Status.FAIL, result, fix)


def none(name: str, why: str) -> Check:
    """The check does not apply."""
    return Check(name, Status.NONE, why)


async def bounded(name: str, work: Awaitable[Check], *, fix: str) -> Check:
    """The outcome of `work` within its time; whatever goes wrong in it is a failed check."""
    try:
        async with asyncio.timeout(EACH_S):
            return await work
    except TimeoutError:
        return fail(name, f"no answer within {EACH_S:g} s", fix)
    except Trouble as trouble:
        return fail(name, str(trouble), fix)
    except CapdexError as error:
        why = f": {error.why}" if error.why else ""
        return fail(name, f"{error.message}{why}", error.fix or fix)
