"""Errors of capdex, divided by what the caller can do about them (see the classes).

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
    OUTPUT_INVALID = "OUTPUT_INVALID"
    SIGNER_CHANGED = "SIGNER_CHANGED"
    LOCK_DRIFT = "LOCK_DRIFT"
    INTERNAL = "INTERNAL"


class ErrorKind(NamedTuple):
    """A row of the table: a code in MCP, HTTP and as an exit code."""

    cap: str
    http: int
    exit: int
    when: str

    @property
    def retryable(self) -> bool:
        """True if the same call may succeed later without a change."""
        return self.exit in (3, 6)


# exit codes: 1 the answer is no, 2 could not start, 3 unavailable, 4 refused,
# 6 done but not served yet, 70 our fault
_WHEN: dict[tuple[str, int, int], dict[Code, str]] = {
    ("NOT_FOUND", 404, 1): {
        Code.NOT_FOUND: "no such name or version",
        Code.YANKED: "only yanked versions match",
    },
    ("INVALID_INPUT", 400, 1): {
        Code.INVALID_INPUT: "a bad URI, range, filter, cursor, schema or package"
    },
    ("EXECUTION_FAILED", 422, 1): {
        Code.UNVERIFIED: "the package exists and was rejected; see its reason",
        Code.BAD_PROOF: "a storage proof does not prove what was answered",
    },
    ("EXECUTION_FAILED", 503, 3): {
        Code.PENDING: "announced on chain, its bytes not had yet",
        Code.STALLED: "the node waits for an operator or an RPC endpoint",
        Code.SIGNER_UNAVAILABLE: "the external signer does not answer",
        Code.RPC_UNAVAILABLE: "the chain endpoint is down",
        Code.IPFS_UNAVAILABLE: "the IPFS endpoint is down",
        Code.NODE_UNAVAILABLE: "the capdex node is down",
        Code.SERVICE_UNAVAILABLE: "the service that a tool calls is down or busy",
        Code.DATABASE_LOCKED: "another writer holds the database",
        Code.DATABASE_UNAVAILABLE: "the database is down",
    },
    ("PERMISSION_DENIED", 401, 4): {Code.UNAUTHENTICATED: "credentials are missing"},
    ("PERMISSION_DENIED", 403, 4): {
        Code.PERMISSION_DENIED: "credentials do not suffice",
        Code.NAME_TAKEN: "another account owns the name",
        Code.NOT_OWNER: "the account does not own the name",
        Code.NO_CONSENT: "the plan was not agreed to",
        Code.WRONG_PASSPHRASE: "the key file did not open",
        Code.KEY_EXPOSED: "a key is public or its file readable by others",
        Code.EMPTY_ACCOUNT: "the account cannot pay the fee",
        Code.WRONG_CHAIN: "the endpoint speaks for another chain",
        Code.NAME_RESERVED: "the name, or one that looks like it, is reserved",
        Code.FEE_OVER_CAP: "the fee is over the cap",
        Code.SIGNER_REFUSED: "the external signer said no",
        Code.CONFIRM_NEEDED: "a person must agree to this call first",
        Code.SIGNER_CHANGED: "another key signed this version than the installed one",
    },
    ("INVALID_INPUT", 413, 1): {Code.TOO_LARGE: "the input is over a stated limit"},
    ("EXECUTION_FAILED", 429, 3): {Code.RATE_LIMITED: "too many requests for now"},
    ("TIMEOUT", 504, 3): {Code.TIMEOUT: "no answer within the time allowed"},
    ("TIMEOUT", 504, 6): {Code.NOT_SERVED: "it is on chain, and the node does not serve it yet"},
    ("INVALID_INPUT", 400, 2): {
        Code.USAGE: "the call makes no sense as written",
        Code.UNREADABLE: "a file cannot be read or written",
        Code.CONFIG: "a setting is missing or wrong",
        Code.NO_CONTRACT: "no registry stands at the address",
        Code.FOREIGN_DATABASE: "the database belongs to another chain or registry",
    },
    ("INVALID_INPUT", 409, 1): {
        Code.VERSION_EXISTS: "this version is published with other bytes",
        Code.STEP_TOO_SMALL: "the changes require a larger step of the version",
        Code.SCHEMA_CHANGED: "the schema changed incompatibly under an unchanged $id",
        Code.AMBIGUOUS: "several capabilities match equally well",
        Code.LOCK_DRIFT: "the lock file and what is installed differ",
    },
    ("EXECUTION_FAILED", 502, 1): {
        Code.EXECUTION_FAILED: "the tool ran and reported an error",
        Code.OUTPUT_INVALID: "the output of the tool breaks its output schema",
    },
    ("INVALID_INPUT", 409, 0): {Code.ALREADY_DONE: "nothing was left to do"},
    ("EXECUTION_FAILED", 409, 1): {Code.REVERTED: "the contract refused the transaction"},
    ("EXECUTION_FAILED", 500, 70): {Code.INTERNAL: "a fault of ours; please report it"},
}
KINDS = {
    code: ErrorKind(*numbers, codes[code])
    for code in Code
    for numbers, codes in _WHEN.items()
    if code in codes
}


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
    def line(self) -> str:
        """The message and its cause in one line."""
        return f"{self.message}: {self.why}".removesuffix(": ")

    @property
    def kind(self) -> ErrorKind:
        """The row of the table for this error's code."""
        return KINDS[self.code]

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


def untrusted_text(value: Any) -> str:
    """Return a text or number of untrusted JSON as text; empty for anything else.

    A list or an object may be nested too deep for Python to format.
    """
    return str(value)[:MAX_TEXT_CHARS] if isinstance(value, str | int | float) else ""
