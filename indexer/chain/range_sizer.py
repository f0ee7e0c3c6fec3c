"""Choose how many blocks one `eth_getLogs` covers, by the size of replies and by refusals."""

from __future__ import annotations

from dataclasses import dataclass

TARGET_BYTES = 2 * 1024 * 1024  # larger replies are slower per log, on every client
TARGET_LOGS = 1_500  # the registry's logs that take about as many bytes
FIRST_BLOCKS = 16  # a first range that is too dense holds up all others
MAX_BLOCKS = 100_000
MAX_GROWTH = 4  # one thin range must not make the next one enormous
FIRST_CALM = 8  # ranges after a refusal until a little more is asked for
MAX_CALM = 512  # a provider's fixed limit is hit no more often than once in so many ranges


@dataclass(slots=True)
class RangeSizer:
    """The number of `blocks` to ask for next, and the `limit` learned from refusals.

    After some ranges without a refusal the limit is raised by a quarter; after twice as many if the
    last raise was refused, after half as many if it was not.
    """

    blocks: int = FIRST_BLOCKS
    limit: int = MAX_BLOCKS
    _calm: int = 0
    _needed: int = FIRST_CALM
    _raised: bool = False  # since the last refusal

    def learn(self, blocks: int, logs: int, size: int) -> None:
        """Adapt to a reply of `size` bytes with `logs` logs in `blocks` blocks."""
        fullness = max(logs / TARGET_LOGS, size / TARGET_BYTES, 1e-9)
        self._calm += 1
        if self._calm >= self._needed and self.limit < MAX_BLOCKS:
            if self._raised:
                self._needed = max(self._needed // 2, FIRST_CALM)
            self._calm, self._raised = 0, True
            self.limit = min(self.limit + self.limit // 4 + 1, MAX_BLOCKS)
        wanted = int(min(blocks / fullness, MAX_BLOCKS))
        self.blocks = max(1, min(wanted, self.blocks * MAX_GROWTH, self.limit))

    def shrink(self, blocks: int, hint: int | None = None) -> int:
        """Adapt to the refusal of `blocks` blocks; return how many to ask for instead.

        `hint` is the number that the endpoint suggests.
        """
        less = max(1, hint if hint is not None and hint < blocks else blocks // 2)
        if blocks <= self.limit:  # ranges that were under way together are one refusal
            self._needed = min(2 * self._needed, MAX_CALM)
        self._calm, self._raised = 0, False
        self.limit = min(self.limit, less)
        self.blocks = min(self.blocks, self.limit)
        return less
