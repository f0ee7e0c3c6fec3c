"""The limits on clients that an operator sets."""

from __future__ import annotations

import msgspec

MAX_CONNECTIONS = 4096  # of one process: each takes about 15 kB
REQUESTS_PER_S = 200.0  # a twentieth of what one process answers
TIMEOUT_S = 20.0
KEEP_ALIVE_S = 60.0  # balancers keep their connections for 60 s


class ClientLimits(msgspec.Struct, frozen=True):
    """Limits on the clients of one process.

    Of `max_connections`, `max_per_client` may come from one address; 0 is an eighth. `timeout_s` is
    for the first byte, the head, the body and an answer that is not read; `keep_alive_s` between
    two requests. `rate` is requests a second for one client, 0 for no limit, and twice as many at
    once. Loopback and the `trusted_proxies` (addresses, networks) have no limits of their own.
    """

    max_connections: int = MAX_CONNECTIONS
    max_per_client: int = 0
    timeout_s: float = TIMEOUT_S
    keep_alive_s: float = KEEP_ALIVE_S
    rate: float = REQUESTS_PER_S
    limit_loopback: bool = False
    trusted_proxies: tuple[str, ...] = ()
    token_file: str | None = None

    @property
    def per_client(self) -> int:
        """The connections of one address."""
        return self.max_per_client or max(1, self.max_connections // 8)
