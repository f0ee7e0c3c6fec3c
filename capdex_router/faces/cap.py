"""CAP 0.1.0-draft over the runtime: `capability.list`, `capability.describe`, `capability.invoke`.

Open issues of the draft, as they are resolved here: a version is exact in references, and only the
tools of the MCP face take the highest for none; there is no progress protocol; side effects are
told by `annotations`, a custom field that nobody needs to read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from capdex.errors import CapdexError, InvalidInput
from capdex.json import Json
from capdex_router.catalog.catalog import Catalog
from capdex_router.invoke.invoke import Caller, Invoker
from capdex_router.model.refs import CapabilityRef, InvokeResult

PAGE: Final = 100


@dataclass(frozen=True, slots=True)
class Cap:
    """The three operations over one catalogue, with JSON parameters; they raise CapdexError."""

    catalog: Catalog
    invoker: Invoker

    @property
    def methods(self) -> Mapping[str, Callable[[Json, Caller], Awaitable[Json]]]:
        """The operations by their names."""
        return {
            "capability.list": self._list,
            "capability.describe": self._describe,
            "capability.invoke": self._invoke,
        }

    async def _list(self, params: Json, _: Caller) -> Json:
        """Return a page of manifests, and where the next begins; each (id, version) once.

        What cannot be read, as where a package's bytes are gone, is named beside the others.
        """
        given = params.get("cursor")
        cursor = 0 if given is None else given
        if type(cursor) is not int or cursor < 0:
            raise InvalidInput(
                "cursor is none of ours", fix="give next of the page before, or leave it out"
            )
        refs = [listed.ref for listed in self.catalog.listed()]
        after = cursor + PAGE
        page: list[Json] = []
        failed: list[Json] = []
        for ref in refs[cursor:after]:
            try:
                page.append(self._manifest(ref))
            except CapdexError as error:
                failed.append({**ref.to_json(), "error": error.to_json()})
        told = {"capabilities": page} | ({"failed": failed} if failed else {})
        return told | ({"next": after} if after < len(refs) else {})

    async def _describe(self, params: Json, _: Caller) -> Json:
        return self._manifest(read_ref(params))

    async def _invoke(self, params: Json, caller: Caller) -> Json:
        try:
            ref = read_ref(params.get("ref"))
        except CapdexError as error:
            return InvokeResult.of_error(error, 0).to_json()
        given = params.get("input", {})
        result = await self.invoker.invoke(ref.capability_id, ref.version, given, caller)
        return result.to_json()

    def _manifest(self, ref: CapabilityRef) -> Json:
        """Return a manifest; raises InvalidInput NOT_FOUND for an unknown id and version."""
        capability = self.catalog.get(ref.capability_id, ref.version)
        return capability.manifest() | {"annotations": asdict(capability.annotations)}


def read_ref(value: object) -> CapabilityRef:
    """Return a CapabilityRef of JSON; raises InvalidInput."""
    if isinstance(value, dict):
        capability_id, version = value.get("capability_id"), value.get("version")
        if isinstance(capability_id, str) and isinstance(version, str):
            return CapabilityRef(capability_id, version)
    raise InvalidInput(
        "this is not a CapabilityRef", fix='give {"capability_id": "…", "version": "1.0.0"}'
    )
