"""The table of open connections: how many there are, which may be closed, and until when."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from capdex_service.limits.addresses import Addresses, client_key
from capdex_service.limits.options import ClientLimits

SWEEP_S: Final = 1.0  # at most, between two looks at the deadlines
MAX_UNREAD_BYTES: Final = 64 * 1024 * 1024  # of all answers that clients do not read


class Connection(Protocol):
    """A connection of a client; at its `deadline` (loop time) it is cut."""

    deadline: float
    client_key: str

    def is_over(self) -> bool:
        """True if it only waits for the client to read the rest of its answer."""

    def cut(self) -> None:
        """Close it at once."""


class ConnectionTable:
    """All connections of a process, in all and by client.

    A connection waits while no complete request of it is being answered. Where one too many comes,
    the one that waits longest among those of the client with most connections is cut, so a client
    that fills the table only loses its own connections. If none of them waits, the new one is cut.
    """

    def __init__(
        self, limits: ClientLimits, addresses: Addresses, note: Callable[[str], None]
    ) -> None:
        self.limits = limits
        self._addresses, self._note = addresses, note
        self._open: set[Connection] = set()
        # The connections of each client that wait, the longest first (a dictionary has an order).
        self._waiting: dict[str, dict[Connection, None]] = {}
        self._count: Counter[str] = Counter()  # of open connections, by client
        self._unread: dict[Connection, int] = {}  # bytes, the longest unread first

    def __len__(self) -> int:
        return len(self._open)

    def add(self, connection: Connection, address: str) -> None:
        """Add a new connection, and cut one where there is one too many."""
        client = connection.client_key = client_key(address)
        self._open.add(connection)
        self._count[client] += 1
        self.waits(connection)
        over = self._count[client] > self.limits.per_client
        if over and not self._addresses.unlimited(address):
            self._cut_one(client, connection)
        elif len(self._open) > self.limits.max_connections:
            self._cut_one(max(self._count, key=self._count.__getitem__), connection)

    def remove(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        if connection in self._open:
            self._open.remove(connection)
            self.works(connection)
            self._count[connection.client_key] -= 1
            if not self._count[connection.client_key]:
                del self._count[connection.client_key]
            self._unread.pop(connection, None)

    def waits(self, connection: Connection) -> None:
        """The connection waits for its client from now on."""
        if connection in self._open:
            self._waiting.setdefault(connection.client_key, {}).setdefault(connection)

    def works(self, connection: Connection) -> None:
        """The connection has a complete request, or is closed."""
        waiting = self._waiting.get(connection.client_key)
        if waiting is not None and connection in waiting:
            del waiting[connection]
            if not waiting:
                del self._waiting[connection.client_key]

    def unread(self, connection: Connection, size: int) -> None:
        """The client leaves `size` bytes of answers unread; 0 where it reads again."""
        self._unread.pop(connection, None)
        if size and connection in self._open:
            self._unread[connection] = size
            while sum(self._unread.values()) > MAX_UNREAD_BYTES:
                self._cut(next(iter(self._unread)), "answers left unread")

    def sweep(self, now: float) -> None:
        """Cut the connections whose deadline has passed."""
        for connection in [x for x in self._open if x.deadline <= now]:
            self._cut(connection, "too slow")
        for connection in self._open:
            if connection.deadline == math.inf and connection.is_over():
                connection.deadline = now + self.limits.timeout_s

    async def sweep_always(self) -> None:
        """Sweep until cancelled."""
        clock = asyncio.get_running_loop().time
        pause_s = min(SWEEP_S, self.limits.timeout_s / 4, self.limits.keep_alive_s / 4)
        while True:
            await asyncio.sleep(pause_s)
            self.sweep(clock())

    def _cut_one(self, client: str, new: Connection) -> None:
        self._cut(next(iter(self._waiting.get(client, ())), new), "one connection too many")

    def _cut(self, connection: Connection, why: str) -> None:
        self._note(why)
        self.remove(connection)
        connection.cut()


def build_table(limits: ClientLimits, note: Callable[[str], None]) -> ConnectionTable:
    """Return an empty table of these limits; raises UsageError if a proxy is not an address."""
    addresses = Addresses(limits.trusted_proxies, limit_loopback=limits.limit_loopback)
    return ConnectionTable(limits, addresses, note)
