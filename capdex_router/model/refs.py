"""References and results of CAP 0.1.0-draft: `CapabilityRef` and `InvokeResult`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from capdex.errors import CapdexError
from capdex.json import Json

BUG: Final = "the log on stderr has the details; please report it"
AUTHOR: Final = "tell the author of the package"
SERVICE: Final = "tell whoever runs the service, or call another"


@dataclass(frozen=True, slots=True, order=True)
class CapabilityRef:
    """A capability and its version; it says nothing about a transport (CAP, CapabilityRef).

    `capability_id` is the URI of a package without its version; a tool is `<URI>#<tool name>`.
    """

    capability_id: str
    version: str

    def to_json(self) -> Json:
        """Return the reference as CAP writes it."""
        return {"capability_id": self.capability_id, "version": self.version}


@dataclass(frozen=True, slots=True)
class InvokeResult:
    """The result of an invocation: an output or an error, never both (CAP, Invocation).

    `error` is the JSON of CAP's CapabilityError: `code` is one of its five codes, `reason` the code
    of capdex (P16), `message` and `fix` are for people. `duration_ms` is of a monotonic clock.
    """

    output: Json | None
    error: Json | None
    duration_ms: int

    @property
    def ok(self) -> bool:
        """True if the invocation has an output."""
        return self.error is None

    @classmethod
    def of_error(cls, error: CapdexError, duration_ms: int) -> Self:
        """Return the result of a failed invocation."""
        fields = error.to_json()
        return cls(None, {**fields, "code": error.kind.cap, "reason": fields["code"]}, duration_ms)

    def to_json(self) -> Json:
        """Return the result as CAP writes it."""
        return {
            "ok": self.ok,
            "output": self.output,
            "error": self.error,
            "duration_ms": self.duration_ms,
        }


def structured_of(output: Json) -> Json:
    """Return the structured content of an output that has other content beside it, else itself."""
    structured = output.get("structuredContent")
    if isinstance(structured, dict) and output.keys() == {"content", "structuredContent"}:
        return structured
    return output
