"""Problems found in a package, and reasons why it is not verified.

A `Problem` has a place; a `Reason` explains a verdict. Their texts are in `capdex.codes`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from capdex.codes import reason_codes


class Verdict(StrEnum):
    """Verdict on a package: a pure function of its bytes and its event (P6)."""

    VERIFIED = "verified"
    SIGNED = "signed"
    UNSIGNED = "unsigned"
    INVALID = "invalid"
    UNRESOLVABLE = "unresolvable"
    MISMATCH = "mismatch"


class Availability(StrEnum):
    """Availability of a package's bytes at this time, apart from the verdict (P6)."""

    PENDING = "pending"
    AVAILABLE = "available"
    PARKED = "parked"


class Severity(StrEnum):
    """Severity of a problem; only errors refuse a package."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Reason(StrEnum):
    """Stable reason codes: of a problem in a file, or of a verdict."""

    # what the chain says and the bytes do not (verdict mismatch)
    BAD_EVENT = "BAD_EVENT"
    BAD_CID = "BAD_CID"
    CID_MISMATCH = "CID_MISMATCH"
    NOT_A_FILE = "NOT_A_FILE"
    SHA256_MISMATCH = "SHA256_MISMATCH"
    ID_MISMATCH = "ID_MISMATCH"
    VERSION_MISMATCH = "VERSION_MISMATCH"
    # reading (P7, limits)
    TOO_LARGE = "TOO_LARGE"
    NOT_UTF8 = "NOT_UTF8"
    FORBIDDEN_CHARACTER = "FORBIDDEN_CHARACTER"
    YAML_SYNTAX = "YAML_SYNTAX"
    YAML_FEATURE = "YAML_FEATURE"
    DUPLICATE_KEY = "DUPLICATE_KEY"
    TOO_DEEP = "TOO_DEEP"
    TOO_MANY = "TOO_MANY"
    # shape (NIP-7, P8-P10a)
    MISSING_FIELD = "MISSING_FIELD"
    WRONG_TYPE = "WRONG_TYPE"
    UNKNOWN_FIELD = "UNKNOWN_FIELD"
    BAD_VALUE = "BAD_VALUE"
    BAD_ID = "BAD_ID"
    BAD_SCHEMA = "BAD_SCHEMA"
    BAD_SCHEMA_URI = "BAD_SCHEMA_URI"
    BAD_TRIGGER = "BAD_TRIGGER"
    BAD_TOOL = "BAD_TOOL"
    BAD_BINDING = "BAD_BINDING"
    UNBOUND_TOOL = "UNBOUND_TOOL"
    BAD_RESOURCE = "BAD_RESOURCE"
    UNDECLARED_PERMISSION = "UNDECLARED_PERMISSION"
    # text that may steer a model (`capdex.manifest.prompt_injection`): shown, never a verdict
    UNEDITED = "UNEDITED"
    UNKNOWN_REQUIRED = "UNKNOWN_REQUIRED"
    LINT_OVERRIDE = "LINT_OVERRIDE"
    LINT_HIDDEN_TAG = "LINT_HIDDEN_TAG"
    LINT_SECRECY = "LINT_SECRECY"
    LINT_CONTROL_TOKENS = "LINT_CONTROL_TOKENS"
    LINT_EXFILTRATION = "LINT_EXFILTRATION"
    LINT_SECRET_PLACE = "LINT_SECRET_PLACE"  # noqa: S105 - a code, not a secret
    LINT_FOREIGN_TOOL = "LINT_FOREIGN_TOOL"
    LINT_CONVERSATION = "LINT_CONVERSATION"
    LINT_HIDDEN_MARKDOWN = "LINT_HIDDEN_MARKDOWN"
    LINT_ROLE_PLAY = "LINT_ROLE_PLAY"
    LINT_ENCODED = "LINT_ENCODED"
    LINT_JAILBREAK = "LINT_JAILBREAK"
    LINT_DECEPTIVE_NAME = "LINT_DECEPTIVE_NAME"
    LINT_IMITATION = "LINT_IMITATION"
    LINT_SECRET_VALUE = "LINT_SECRET_VALUE"  # noqa: S105 - a code, not a secret
    BINARY_FILE = "BINARY_FILE"
    # signature (P5, P6)
    UNSIGNED = "UNSIGNED"
    MISSING_AUTHOR = "MISSING_AUTHOR"
    BAD_AUTHOR = "BAD_AUTHOR"
    UNKNOWN_DID_METHOD = "UNKNOWN_DID_METHOD"
    BAD_SIGNATURE = "BAD_SIGNATURE"
    SIGNATURE_ENCODING = "SIGNATURE_ENCODING"
    NOT_BOUND = "NOT_BOUND"
    # not judged yet: time or memory ran out, or the bytes cannot be had (parked)
    WORKER_LIMIT = "WORKER_LIMIT"
    UNAVAILABLE = "UNAVAILABLE"


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file: its place, its meaning and its remedy.

    `path` is like `tools[2].function.parameters` (empty: the whole file); `line` and `column`
    count from 1 (0: no place).
    """

    code: Reason
    path: str
    message: str
    line: int = 0
    column: int = 0
    severity: Severity = Severity.ERROR
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        """The problem as the outside judge's surface shows it, hint filled from the table."""
        return asdict(self) | {"hint": self.hint or reason_codes()[self.code].hint}
