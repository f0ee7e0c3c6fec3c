"""How many blocks one `eth_getLogs` should cover: by what comes back, never by a fixed number."""

from __future__ import annotations

from dataclasses import dataclass

TARGET_LOGS = 3_000  # about 4 MB of JSON: larger replies are slower per log, on every client
FIRST_BLOCKS = 64
MAX_BLOCKS = 100_000
MAX_GROWTH = 4  # one thin range must not make the next one enormous


@dataclass(slots=True)
class Span:
    """The blocks to ask for next, steered by the density of logs and by the endpoint's refusals."""

    blocks: int = FIRST_BLOCKS
    limit: int = MAX_BLOCKS

    def learn(self, blocks: int, logs: int) -> None:
        """Take in that `blocks` blocks held `logs` logs."""
        wanted = blocks * TARGET_LOGS // logs if logs else MAX_BLOCKS
        # A refusal is not for ever: the limit creeps up again, by a sixteenth a range.
        self.limit = min(self.limit + self.limit // 16 + 1, MAX_BLOCKS)
        self.blocks = max(1, min(wanted, self.blocks * MAX_GROWTH, self.limit))

    def shrink(self, blocks: int) -> None:
        """Take in that `blocks` blocks were too many."""
        self.limit = max(1, blocks // 2)
        self.blocks = min(self.blocks, self.limit)
