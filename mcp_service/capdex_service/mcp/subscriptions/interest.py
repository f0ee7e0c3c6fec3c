"""Events of a subscription: which changes of names it is told of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import mcp_types as types
from mcp.shared.subscriptions import ResourceUpdated

from capdex_service.mcp.resources import CHANGES, ResourceUri


@dataclass(frozen=True, slots=True)
class Interest:
    """URIs by the name they are about, and whether everything new is wanted.

    Any change of an answer about a name is one of all its URIs: a client reads again what it needs.
    """

    uris: dict[str, list[str]] = field(default_factory=dict)
    everything: bool = False

    @classmethod
    def of(cls, uris: Iterable[str]) -> Interest:
        """Return the interest in these URIs; raises InvalidInput for one that is not ours."""
        of_name: dict[str, list[str]] = {}
        everything = False
        for uri in uris:
            if uri == CHANGES:
                everything = True
            else:
                of_name.setdefault(ResourceUri.parse(uri).name, []).append(uri)
        return cls(of_name, everything)

    def events(self, names: Iterable[str]) -> Iterator[ResourceUpdated]:
        """Yield what a change of these names means for this interest."""
        changed = False
        for name in names:
            changed = True
            for uri in self.uris.get(name, ()):
                yield ResourceUpdated(uri)
        if changed and self.everything:
            yield ResourceUpdated(CHANGES)


def notification(event: ResourceUpdated) -> types.ResourceUpdatedNotification:
    """Return an event as a notification of the revisions up to 2025-11-25."""
    return types.ResourceUpdatedNotification(
        params=types.ResourceUpdatedNotificationParams(uri=event.uri)
    )
