"""Which endpoint is asked next: the same one while it does well, else the one that does best."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from capdex.net.rpc.endpoint import Endpoint

STAY_S = 0.5  # a shorter pause is waited for: two endpoints rarely show the same head


class Pool:
    """The endpoints of one chain, in the order given; `current` is the one asked last."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self.endpoints = tuple(endpoints)
        self.current = self.endpoints[0]

    def peek(self, now: float, without: Collection[Endpoint] = ()) -> Endpoint:
        """The endpoint to ask; it may have to be waited for.

        One that contradicted itself or others is asked only when no other can be, one that failed
        last only when the others did too, and among equals the current one goes on.
        """
        able = [endpoint for endpoint in self.endpoints if endpoint not in without]
        ready = [endpoint for endpoint in able if endpoint.wait_s(now) <= STAY_S]
        if not ready:
            return min(able, key=lambda endpoint: endpoint.wait_s(now))
        return min(
            ready,
            key=lambda endpoint: (
                max(0.0, endpoint.avoided_until - now),
                endpoint.breaker.failures + endpoint.refusals,
                endpoint is not self.current,
            ),
        )

    def pick(self, now: float, without: Collection[Endpoint] = ()) -> Endpoint:
        """As `peek`, and it is the current one from now on."""
        self.current = self.peek(now, without)
        return self.current

    def named(self, label: str) -> Endpoint:
        """The endpoint that is shown as `label`."""
        return next(endpoint for endpoint in self.endpoints if endpoint.label == label)
