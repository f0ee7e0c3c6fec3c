"""The one table of error codes and one of reason codes: meaning, cause, remedy, example (P16).

The command line, HTTP, MCP, the explorer and docs/protocol.md read their texts here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

__all__ = ["ErrorEntry", "ReasonEntry", "all_codes", "error_codes", "reason_codes"]


class ErrorEntry(NamedTuple):
    """Meaning of an error code, its code in CAP, HTTP and as an exit code, and its explanation."""

    meaning: str
    cap: str
    http: int
    exit: int
    cause: str
    remedy: str
    example: str

    @property
    def retryable(self) -> bool:
        """True if the same call may succeed later without a change."""
        return self.exit in (3, 6)


class ReasonEntry(NamedTuple):
    """Meaning of a reason code, the action it asks for, and its explanation."""

    meaning: str
    hint: str
    cause: str
    remedy: str
    example: str


@cache
def error_codes() -> Mapping[str, ErrorEntry]:
    """Return the table of error codes, in the order of `capdex.errors.Code`."""
    return {code: ErrorEntry(**entry) for code, entry in _table("errors").items()}


@cache
def reason_codes() -> Mapping[str, ReasonEntry]:
    """Return the table of reason codes, in the order of `capdex.problems.Reason`."""
    return {code: ReasonEntry(**entry) for code, entry in _table("reasons").items()}


def all_codes() -> Mapping[str, ErrorEntry | ReasonEntry]:
    """Return both tables in one; a code that both have is explained as a reason."""
    return {**error_codes(), **reason_codes()}


def _table(name: str) -> dict[str, dict[str, Any]]:
    import tomllib  # only now: most runs of a command show no code
    from importlib.resources import files

    return tomllib.loads(files("capdex").joinpath(f"codes/{name}.toml").read_text("utf-8"))
