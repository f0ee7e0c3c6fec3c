"""CAP 0.1.0-draft over the runtime: `capability.list`, `capability.describe`, `capability.invoke`.

Open issues of the draft, as they are resolved here: a version is exact in references, and only the
tools of the MCP face take the highest for none; there is no progress protocol; side effects are
told by `annotations`, a custom field that nobody needs to read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from capdex.errors import CapdexError, InvalidInput
from capdex.json import Json
from capdex_router.catalog.catalog import Catalog
from capdex_router.invoke.invoke import Caller, Invoker
from capdex_router.model.refs import CapabilityRef, InvokeResult

PAGE: Final = 100
Answer = Any


@dataclass(frozen=True, slots=True)
class Cap:
    """The three operations over one catalogue."""

    catalog: Catalog
    invoker: Invoker

    def list(self, cursor: int = 0) -> tuple[list[Json], int | None]:
        """Return a page of manifests, and where the next begins; each (id, version) once."""
        refs = [listed.ref for listed in self.catalog.listed()]
        after = cursor + PAGE
        page = [self.describe(ref) for ref in refs[cursor:after]]
        return page, after if after < len(refs) else None

    def describe(self, ref: CapabilityRef) -> Json:
        """Return a manifest; raises InvalidInput NOT_FOUND for an unknown id and version."""
        capability = self.catalog.get(ref.capability_id, ref.version)
        hints = capability.annotations
        return capability.manifest() | {
            "annotations": {
                "read_only": hints.read_only,
                "destructive": hints.destructive,
                "idempotent": hints.idempotent,
            }
        }

    async def invoke(self, ref: CapabilityRef, given: object, caller: Caller) -> InvokeResult:
        """Invoke a capability; every error is a result."""
        return await self.invoker.invoke(ref.capability_id, ref.version, given, caller)


def methods(cap: Cap) -> dict[str, Callable[[Json, Caller], Awaitable[Answer]]]:
    """Return the operations as methods with JSON parameters; they raise CapdexError."""

    async def list_(params: Json, _: Caller) -> Json:
        cursor = params.get("cursor", 0)
        if not isinstance(cursor, int) or cursor < 0:
            raise InvalidInput(
                "cursor is none of ours", fix="give next of the page before, or leave it out"
            )
        page, after = cap.list(cursor)
        return {"capabilities": page} | ({} if after is None else {"next": after})

    async def describe(params: Json, _: Caller) -> Json:
        return cap.describe(read_ref(params))

    async def invoke(params: Json, caller: Caller) -> Json:
        try:
            ref = read_ref(params.get("ref"))
        except CapdexError as error:
            return InvokeResult.of_error(error, 0).to_json()
        return (await cap.invoke(ref, params.get("input", {}), caller)).to_json()

    return {
        "capability.list": list_,
        "capability.describe": describe,
        "capability.invoke": invoke,
    }


def read_ref(value: object) -> CapabilityRef:
    """Return a CapabilityRef of JSON; raises InvalidInput."""
    if isinstance(value, dict):
        capability_id, version = value.get("capability_id"), value.get("version")
        if isinstance(capability_id, str) and isinstance(version, str):
            return CapabilityRef(capability_id, version)
    raise InvalidInput(
        "this is not a CapabilityRef", fix='give {"capability_id": "…", "version": "1.0.0"}'
    )
