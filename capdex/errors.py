"""Errors of capdex, divided by what the caller can do about them (see the classes).

Each carries a `code`, whose texts and numbers are in `capdex.codes` (P16). A message says what
happened; `why` names the offending value and its place; `fix` says what to do next.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from capdex.codes import ErrorEntry, error_codes


class Code(StrEnum):
    """Stable error codes. P16 says which of them travel over MCP and HTTP."""

    NOT_FOUND = "NOT_FOUND"
    YANKED = "YANKED"
    INVALID_INPUT = "INVALID_INPUT"
    UNVERIFIED = "UNVERIFIED"
    PENDING = "PENDING"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    TOO_LARGE = "TOO_LARGE"
    RATE_LIMITED = "RATE_LIMITED"
    STALLED = "STALLED"
    TIMEOUT = "TIMEOUT"
    # local to the command line and the node
    USAGE = "USAGE"
    UNREADABLE = "UNREADABLE"
    CONFIG = "CONFIG"
    MISSING_PART = "MISSING_PART"
    VERSION_EXISTS = "VERSION_EXISTS"
    ALREADY_DONE = "ALREADY_DONE"
    NAME_TAKEN = "NAME_TAKEN"
    NAME_RESERVED = "NAME_RESERVED"
    NOT_OWNER = "NOT_OWNER"
    NO_CONSENT = "NO_CONSENT"
    WRONG_PASSPHRASE = "WRONG_PASSPHRASE"  # noqa: S105 - a code, not a secret
    KEY_EXPOSED = "KEY_EXPOSED"
    EMPTY_ACCOUNT = "EMPTY_ACCOUNT"
    WRONG_CHAIN = "WRONG_CHAIN"
    NO_CONTRACT = "NO_CONTRACT"
    REVERTED = "REVERTED"
    STEP_TOO_SMALL = "STEP_TOO_SMALL"
    SCHEMA_CHANGED = "SCHEMA_CHANGED"
    FEE_OVER_CAP = "FEE_OVER_CAP"
    SIGNER_REFUSED = "SIGNER_REFUSED"
    SIGNER_UNAVAILABLE = "SIGNER_UNAVAILABLE"
    BAD_PROOF = "BAD_PROOF"
    RPC_UNAVAILABLE = "RPC_UNAVAILABLE"
    NOT_SERVED = "NOT_SERVED"
    IPFS_UNAVAILABLE = "IPFS_UNAVAILABLE"
    NODE_UNAVAILABLE = "NODE_UNAVAILABLE"
    DATABASE_LOCKED = "DATABASE_LOCKED"
    DATABASE_UNAVAILABLE = "DATABASE_UNAVAILABLE"
    FOREIGN_DATABASE = "FOREIGN_DATABASE"
    AMBIGUOUS = "AMBIGUOUS"
    CONFIRM_NEEDED = "CONFIRM_NEEDED"
    EXECUTION_FAILED = "EXECUTION_FAILED"
    SERVICE_UNAVAILABLE = "SERVICE_UNAVAILABLE"
    MAYBE_DONE = "MAYBE_DONE"
    OUTPUT_INVALID = "OUTPUT_INVALID"
    SIGNER_CHANGED = "SIGNER_CHANGED"
    LOCK_DRIFT = "LOCK_DRIFT"
    INTERNAL = "INTERNAL"


@dataclass(eq=False)
class CapdexError(Exception):
    """Base of every error; never raised itself. `details` is JSON-able and safe to show."""

    message: str
    code: Code
    why: str = ""
    fix: str = ""
    details: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        if type(self) is CapdexError:
            raise TypeError("raise one of its families")
        super().__init__(self.message)
        for line in filter(None, (self.why, self.fix)):
            self.add_note(line)  # a traceback shows them below the message

    def __str__(self) -> str:
        return self.message

    @property
    def line(self) -> str:
        """The message and its cause in one line."""
        return f"{self.message}: {self.why}".removesuffix(": ")

    @property
    def kind(self) -> ErrorEntry:
        """The row of the table for this error's code."""
        return error_codes()[self.code]

    def with_details(self, **details: object) -> Self:
        """Return this error with more details; `dataclasses.replace` changes other fields."""
        return replace(self, details=(self.details or {}) | details)

    def to_json(self) -> dict[str, Any]:
        """`{code, message, retryable, details}`, the shape of P16."""
        details = dict(self.details or {})
        if self.why:
            details.setdefault("why", self.why)
        if self.fix:
            details.setdefault("fix", self.fix)
        return {
            "code": str(self.code),
            "message": self.message,
            "retryable": self.kind.retryable,
            "details": details,
        }


@dataclass(eq=False)
class InvalidInput(CapdexError):
    """The input was judged and is wrong: the caller must change it."""

    code: Code = Code.INVALID_INPUT


@dataclass(eq=False)
class UsageError(InvalidInput):
    """The call could not start: an unreadable file, a missing setting, a bad option."""

    code: Code = Code.USAGE


@dataclass(eq=False)
class VerificationFailure(CapdexError):
    """The bytes are not what the chain and the signature say: never retry."""

    code: Code = Code.UNVERIFIED


@dataclass(eq=False)
class Refused(CapdexError):
    """A person must decide: consent, passphrase, ownership, money."""

    code: Code = Code.NO_CONSENT


@dataclass(eq=False)
class ExecutionFailed(CapdexError):
    """A tool ran and failed, or its output breaks its schema; the details are the tool's own."""

    code: Code = Code.EXECUTION_FAILED


@dataclass(eq=False)
class Unavailable(CapdexError):
    """Try again later: an endpoint, a daemon, a lock, bytes not had yet."""

    code: Code = Code.TIMEOUT


MAX_TEXT_CHARS = 1_000  # of a message that another program sent


def untrusted_text(value: object) -> str:
    """Return a text or number of untrusted JSON as text; empty for anything else.

    A list or an object may be nested too deep for Python to format.
    """
    return str(value)[:MAX_TEXT_CHARS] if isinstance(value, str | int | float) else ""


def quoted(text: str) -> str:
    """Return a text of a publisher, an owner or a node as a JSON string, for use in a message."""
    return json.dumps(text, ensure_ascii=False)
