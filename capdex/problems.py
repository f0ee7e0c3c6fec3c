"""Problems found in a package, and reasons why it is not verified, in one table.

A `Problem` has a place; a `Reason` explains a verdict. The command line (`capdex explain CODE`),
HTTP, MCP and docs/protocol.md read their texts from `REASONS`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple


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
    LINT_SECRET_VALUE = "LINT_SECRET_VALUE"  # noqa: S105 - a code, not a secret
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


class ReasonText(NamedTuple):
    """Meaning of a reason, and the action it asks for."""

    meaning: str
    hint: str


REASONS: dict[Reason, ReasonText] = {
    Reason.BAD_EVENT: ReasonText(
        "the event's cap_uri, semver or sha256 does not follow the protocol (P1, P2)",
        "publish through the capdex registry, whose contract refuses such values",
    ),
    Reason.BAD_CID: ReasonText(
        "the CID is not one of the accepted spellings (P3)",
        "upload as one raw block: CIDv1, raw, sha2-256, base32 lower case",
    ),
    Reason.CID_MISMATCH: ReasonText(
        "the CID names other bytes than the sha256 on chain",
        "publish again with the CID of exactly the file that was hashed",
    ),
    Reason.NOT_A_FILE: ReasonText(
        "the CID names a directory, a symlink or something else than a single file, or a file "
        "of too many blocks or bytes",
        "upload as one raw block: CIDv1, raw, sha2-256, base32 lower case",
    ),
    Reason.SHA256_MISMATCH: ReasonText(
        "the bytes do not have the sha256 that was announced on chain",
        "this release cannot be corrected; publish a new version",
    ),
    Reason.ID_MISMATCH: ReasonText(
        "metadata.id is not the cap_uri that was announced on chain",
        "set metadata.id to the URI you publish, sign again and publish a new version",
    ),
    Reason.VERSION_MISMATCH: ReasonText(
        "the semver of the event is not the version in its cap_uri",
        "publish through the capdex registry, which builds both from one value",
    ),
    Reason.TOO_LARGE: ReasonText(
        "the file, or a part of it, is over its limit",
        "shorten the part named; docs/protocol.md lists the limits",
    ),
    Reason.NOT_UTF8: ReasonText(
        "the file is not UTF-8 without a byte order mark", "save it as UTF-8 without a BOM"
    ),
    Reason.FORBIDDEN_CHARACTER: ReasonText(
        "the file holds a character that cannot be seen or that readers understand differently",
        "remove the character named",
    ),
    Reason.YAML_SYNTAX: ReasonText("the file is not YAML", "correct the syntax at the line shown"),
    Reason.YAML_FEATURE: ReasonText(
        "the file uses a YAML feature that packages may not use (P7)",
        "write the value out: no anchors, aliases, tags, merge keys, directives or complex keys",
    ),
    Reason.DUPLICATE_KEY: ReasonText("a key stands twice in one mapping", "remove one of the two"),
    Reason.TOO_DEEP: ReasonText("the file nests too deeply", "flatten the part named"),
    Reason.TOO_MANY: ReasonText(
        "there are more parts than the limit allows", "split the capability in two"
    ),
    Reason.MISSING_FIELD: ReasonText("a required field is missing", "add it"),
    Reason.WRONG_TYPE: ReasonText(
        "a value has another type than the format says", "write a value of the type named"
    ),
    Reason.UNKNOWN_FIELD: ReasonText(
        "a field is unknown to this version of the format", "check its spelling; it is kept as is"
    ),
    Reason.BAD_VALUE: ReasonText(
        "a value is outside what the format allows", "write one of the values named"
    ),
    Reason.BAD_ID: ReasonText(
        "metadata.id is not a capability URI with an exact version",
        "write did:nuwa:cap:<name>@<major.minor.patch>",
    ),
    Reason.BAD_SCHEMA: ReasonText(
        "a JSON Schema is not valid JSON Schema 2020-12",
        "correct the keyword named; a schema follows JSON Schema 2020-12",
    ),
    Reason.BAD_SCHEMA_URI: ReasonText(
        "the schema's $id is not a Schema URI", "write did:nuwa:state:<name>#v<number>"
    ),
    Reason.BAD_TRIGGER: ReasonText(
        "a trigger cannot be used", "triggers are regex (RE2), keyword or embedding"
    ),
    Reason.BAD_TOOL: ReasonText(
        "a tool is not in OpenAI's form", "write {type: function, function: {name, ...}}"
    ),
    Reason.BAD_BINDING: ReasonText(
        "a tool binding cannot be used", "see docs/protocol.md P10 for the four binding types"
    ),
    Reason.UNBOUND_TOOL: ReasonText(
        "a tool is neither built in nor bound, so no runtime can call it", "add it to tool_bindings"
    ),
    Reason.UNDECLARED_PERMISSION: ReasonText(
        "a state.* tool is used that permissions.require does not declare",
        "add it to metadata.permissions.require",
    ),
    Reason.UNEDITED: ReasonText(
        "a line stands as the template has it (found by validate and publish, not by nodes)",
        "write what your capability does, and the address of its service",
    ),
    Reason.UNKNOWN_REQUIRED: ReasonText(
        "required names a property that is not in properties (found by validate, not by nodes)",
        "add the property, or take its name out of required",
    ),
    Reason.LINT_OVERRIDE: ReasonText(
        "text that tells a model to set earlier instructions aside",
        "say what the capability does; where such words are only talked about, quote them",
    ),
    Reason.LINT_HIDDEN_TAG: ReasonText(
        "a tag that makes a model take text for orders from above, such as <IMPORTANT>",
        "write it as plain text",
    ),
    Reason.LINT_SECRECY: ReasonText(
        "text that tells a model to keep something from the person it works for",
        "let the person know, or leave the sentence out",
    ),
    Reason.LINT_CONTROL_TOKENS: ReasonText(
        "control tokens of a chat template, which can end the prompt and begin another",
        "remove them",
    ),
    Reason.LINT_EXFILTRATION: ReasonText(
        "an image or a link that would carry what the model fills in to another host",
        "call a tool with a declared binding instead",
    ),
    Reason.LINT_SECRET_PLACE: ReasonText(
        "a place where keys and passwords lie", "no capability needs to name it"
    ),
    Reason.LINT_FOREIGN_TOOL: ReasonText(
        "an order about a tool that the package does not own", "name the package's own tools only"
    ),
    Reason.LINT_CONVERSATION: ReasonText(
        "text that has the conversation, or the contents of files, passed on",
        "say which values the tool needs",
    ),
    Reason.LINT_HIDDEN_MARKDOWN: ReasonText(
        "text that a page does not show and a model reads", "remove the comment"
    ),
    Reason.LINT_ROLE_PLAY: ReasonText(
        "text that plays the part of a system or assistant message, or lifts all limits",
        "write instructions, not a transcript",
    ),
    Reason.LINT_ENCODED: ReasonText(
        "a long run of encoded data, which people cannot read", "put data behind a tool"
    ),
    Reason.LINT_JAILBREAK: ReasonText(
        "words and phrases that jailbreak prompts have in common, many of them close together",
        "say what the capability does, and leave out what a model would be freed from",
    ),
    Reason.LINT_DECEPTIVE_NAME: ReasonText(
        "a display name with letters of another script that look like others",
        "write each word in one script",
    ),
    Reason.LINT_SECRET_VALUE: ReasonText(
        "a mapped parameter or a fixed header is named like a secret: its value would pass through "
        "the model, or stand in the package",
        "name the secret in auth",
    ),
    Reason.UNSIGNED: ReasonText("the package is not signed", "run capdex sign"),
    Reason.MISSING_AUTHOR: ReasonText(
        "a signature stands there, but metadata.author does not name the signer", "run capdex sign"
    ),
    Reason.BAD_AUTHOR: ReasonText(
        "metadata.author is not a DID URL with a usable key", "run capdex sign"
    ),
    Reason.UNKNOWN_DID_METHOD: ReasonText(
        "the author's DID method cannot be resolved here", "sign with did:key or did:pkh"
    ),
    Reason.BAD_SIGNATURE: ReasonText(
        "the signature is not the author's over these bytes",
        "the file changed after it was signed: run capdex sign again",
    ),
    Reason.SIGNATURE_ENCODING: ReasonText(
        "metadata.signature is not one multibase base58btc value on one line", "run capdex sign"
    ),
    Reason.NOT_BOUND: ReasonText(
        "the signature is valid, but the package does not name the account that published it",
        "sign with metadata.publisher set to the publishing account",
    ),
    Reason.WORKER_LIMIT: ReasonText(
        "judging the package took more time or memory than it may", "make the package simpler"
    ),
    Reason.UNAVAILABLE: ReasonText(
        "the bytes could not be had from any source yet", "pin the file where nodes can reach it"
    ),
}


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
        return asdict(self) | {"hint": self.hint or REASONS[self.code].hint}
