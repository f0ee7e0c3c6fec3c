"""How many blocks one `eth_getLogs` should cover: by what comes back, never by a fixed number."""

from __future__ import annotations

from dataclasses import dataclass

TARGET_BYTES = 2 * 1024 * 1024  # larger replies are slower per log, on every client
TARGET_LOGS = 1_500  # as many of ours, about
FIRST_BLOCKS = 16  # a first range that is too dense holds up all others
MAX_BLOCKS = 100_000
MAX_GROWTH = 4  # one thin range must not make the next one enormous
FIRST_CALM = 8  # ranges after a refusal until a little more is asked for
MAX_CALM = 512  # a vendor's fixed limit is run into no more often than that


@dataclass(slots=True)
class Span:
    """The blocks to ask for next, steered by the size of replies and by the endpoint's refusals.

    A refusal is not for ever: after some ranges that went well the limit is tried a quarter higher,
    after twice as many each time that this failed, after half as many when it went well twice.
    """

    blocks: int = FIRST_BLOCKS
    limit: int = MAX_BLOCKS
    _calm: int = 0
    _needed: int = FIRST_CALM
    _raised: bool = False  # since the last refusal

    def learn(self, blocks: int, logs: int, size: int) -> None:
        """Take in that `blocks` blocks held `logs` logs, in a reply of `size` bytes."""
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
        """Take in that `blocks` blocks were too many; returns how many to ask for instead.

        `hint` is what the endpoint says would do.
        """
        less = max(1, hint if hint is not None and hint < blocks else blocks // 2)
        if blocks <= self.limit:  # ranges that were under way together are one refusal
            self._needed = min(2 * self._needed, MAX_CALM)
        self._calm, self._raised = 0, False
        self.limit = min(self.limit, less)
        self.blocks = min(self.blocks, self.limit)
        return less
