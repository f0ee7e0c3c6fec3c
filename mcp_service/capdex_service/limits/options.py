"""The limits on clients that an operator sets."""

from __future__ import annotations

import msgspec


class ClientLimits(msgspec.Struct, frozen=True):
    """Limits on the clients of one process.

    Of `max_connections`, `max_per_client` may come from one address; 0 is an eighth. `timeout_s` is
    for the first byte, the head, the body and an answer that is not read; `keep_alive_s` between
    two requests. `rate` is requests a second for one client, 0 for no limit, and twice as many at
    once. Loopback and the `trusted_proxies` (addresses, networks) have no limits of their own.
    """

    max_connections: int = 4096  # each takes about 15 kB
    max_per_client: int = 0
    timeout_s: float = 20.0
    keep_alive_s: float = 60.0  # as long as balancers keep theirs
    rate: float = 200.0  # a twentieth of what one process answers
    limit_loopback: bool = False
    trusted_proxies: tuple[str, ...] = ()
    token_file: str | None = None

    @property
    def per_client(self) -> int:
        """The connections of one address."""
        return self.max_per_client or max(1, self.max_connections // 8)
