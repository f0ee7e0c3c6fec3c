"""Errors of capdex, divided by what the caller can do about them.

CapdexError
├── InvalidInput          mend the input: it was judged and is wrong
│   └── UsageError        mend the call: a file cannot be read, an option makes no sense
├── VerificationFailure   never retry: the bytes are not what the chain and the signature say
├── Refused               a person must decide: consent, passphrase, ownership, money
└── Unavailable           try again later: an endpoint, a daemon, a lock, bytes not had yet

Each carries a `code` of the one table below, which the command line, HTTP, MCP and the docs all
read (docs/protocol.md P16). A message says what happened; `why` names the offending value and its
place; `fix` says what to do next.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class Code(StrEnum):
    """Stable error codes; the first ten travel over MCP and HTTP (P16), the rest stay local."""

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
    IPFS_UNAVAILABLE = "IPFS_UNAVAILABLE"
    NODE_UNAVAILABLE = "NODE_UNAVAILABLE"
    DATABASE_LOCKED = "DATABASE_LOCKED"
    DATABASE_UNAVAILABLE = "DATABASE_UNAVAILABLE"
    FOREIGN_DATABASE = "FOREIGN_DATABASE"
    INTERNAL = "INTERNAL"


class ErrorKind(NamedTuple):
    """A row of the table: a code in MCP, HTTP and as an exit code."""

    cap: str
    http: int
    exit: int
    retryable: bool
    when: str


# exit codes: 1 the answer is no, 2 could not start, 3 unavailable, 4 refused, 70 our fault
_ROWS: dict[Code, tuple[str, int, int, bool, str]] = {
    Code.NOT_FOUND: ("NOT_FOUND", 404, 1, False, "no such name or version"),
    Code.YANKED: ("NOT_FOUND", 404, 1, False, "only yanked versions match"),
    Code.INVALID_INPUT: (
        "INVALID_INPUT",
        400,
        1,
        False,
        "a bad URI, range, filter, cursor, schema or package",
    ),
    Code.UNVERIFIED: (
        "EXECUTION_FAILED",
        422,
        1,
        False,
        "the package exists and was rejected; see its reason",
    ),
    Code.PENDING: ("EXECUTION_FAILED", 503, 3, True, "announced on chain, its bytes not had yet"),
    Code.UNAUTHENTICATED: ("PERMISSION_DENIED", 401, 4, False, "credentials are missing"),
    Code.PERMISSION_DENIED: ("PERMISSION_DENIED", 403, 4, False, "credentials do not suffice"),
    Code.TOO_LARGE: ("INVALID_INPUT", 413, 1, False, "the input is over a stated limit"),
    Code.RATE_LIMITED: ("EXECUTION_FAILED", 429, 3, True, "too many requests for now"),
    Code.STALLED: (
        "EXECUTION_FAILED",
        503,
        3,
        True,
        "the node waits for an operator or an RPC endpoint",
    ),
    Code.TIMEOUT: ("TIMEOUT", 504, 3, True, "no answer within the time allowed"),
    Code.USAGE: ("INVALID_INPUT", 400, 2, False, "the call makes no sense as written"),
    Code.UNREADABLE: ("INVALID_INPUT", 400, 2, False, "a file cannot be read or written"),
    Code.CONFIG: ("INVALID_INPUT", 400, 2, False, "a setting is missing or wrong"),
    Code.VERSION_EXISTS: (
        "INVALID_INPUT",
        409,
        1,
        False,
        "this version is published with other bytes",
    ),
    Code.ALREADY_DONE: ("INVALID_INPUT", 409, 0, False, "nothing was left to do"),
    Code.NAME_TAKEN: ("PERMISSION_DENIED", 403, 4, False, "another account owns the name"),
    Code.NOT_OWNER: ("PERMISSION_DENIED", 403, 4, False, "the account does not own the name"),
    Code.NO_CONSENT: ("PERMISSION_DENIED", 403, 4, False, "nobody was there to say yes"),
    Code.WRONG_PASSPHRASE: ("PERMISSION_DENIED", 403, 4, False, "the key file did not open"),
    Code.KEY_EXPOSED: (
        "PERMISSION_DENIED",
        403,
        4,
        False,
        "a key is public or its file readable by others",
    ),
    Code.EMPTY_ACCOUNT: ("PERMISSION_DENIED", 403, 4, False, "the account cannot pay the fee"),
    Code.WRONG_CHAIN: ("PERMISSION_DENIED", 403, 4, False, "the endpoint speaks for another chain"),
    Code.NO_CONTRACT: ("INVALID_INPUT", 400, 2, False, "no registry stands at the address"),
    Code.REVERTED: ("EXECUTION_FAILED", 409, 1, False, "the contract refused the transaction"),
    Code.NAME_RESERVED: (
        "PERMISSION_DENIED",
        403,
        4,
        False,
        "the name, or one that looks like it, is reserved",
    ),
    Code.STEP_TOO_SMALL: (
        "INVALID_INPUT",
        409,
        1,
        False,
        "the change owes a larger step of the version",
    ),
    Code.SCHEMA_CHANGED: (
        "INVALID_INPUT",
        409,
        1,
        False,
        "the schema changed incompatibly under an unchanged $id",
    ),
    Code.FEE_OVER_CAP: ("PERMISSION_DENIED", 403, 4, False, "the fee is over the cap"),
    Code.SIGNER_REFUSED: ("PERMISSION_DENIED", 403, 4, False, "the external signer said no"),
    Code.SIGNER_UNAVAILABLE: (
        "EXECUTION_FAILED",
        503,
        3,
        True,
        "the external signer does not answer",
    ),
    Code.BAD_PROOF: (
        "EXECUTION_FAILED",
        422,
        1,
        False,
        "a storage proof does not prove what was answered",
    ),
    Code.RPC_UNAVAILABLE: ("EXECUTION_FAILED", 503, 3, True, "the chain endpoint is down"),
    Code.IPFS_UNAVAILABLE: ("EXECUTION_FAILED", 503, 3, True, "the IPFS endpoint is down"),
    Code.NODE_UNAVAILABLE: ("EXECUTION_FAILED", 503, 3, True, "the capdex node is down"),
    Code.DATABASE_LOCKED: ("EXECUTION_FAILED", 503, 3, True, "another writer holds the database"),
    Code.DATABASE_UNAVAILABLE: ("EXECUTION_FAILED", 503, 3, True, "the database is down"),
    Code.FOREIGN_DATABASE: (
        "INVALID_INPUT",
        400,
        2,
        False,
        "the database belongs to another chain or registry",
    ),
    Code.INTERNAL: ("EXECUTION_FAILED", 500, 70, False, "a fault of ours; please report it"),
}

KINDS = {code: ErrorKind(*row) for code, row in _ROWS.items()}


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

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        # Errors cross process borders (the verification workers): keep every field.
        return (type(self), (self.message, self.code, self.why, self.fix, self.details))

    @property
    def kind(self) -> ErrorKind:
        """The row of the table for this error's code."""
        return KINDS[self.code]

    @property
    def retryable(self) -> bool:
        """True if the same call may succeed later without a change."""
        return self.kind.retryable

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
            "retryable": self.retryable,
            "details": details,
        }


@dataclass(eq=False)
class InvalidInput(CapdexError):
    """The input was judged and is wrong: mend it."""

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
class Unavailable(CapdexError):
    """Try again later: an endpoint, a daemon, a lock, bytes not had yet."""

    code: Code = Code.TIMEOUT


MAX_TEXT_CHARS = 1_000  # of a message that another program sent


def untrusted_text(value: Any) -> str:
    """Return a text or number of untrusted JSON as text; empty for anything else.

    A list or an object may be nested too deep for Python to format.
    """
    return str(value)[:MAX_TEXT_CHARS] if isinstance(value, str | int | float) else ""
