"""The one writer of the index: events, releases and cursor change in one transaction.

`Store` follows the chain and records verdicts; `Operator` writes beside it what an operator
orders.
"""

from indexer.db.columns import Lane
from indexer.store.cursor import RING_BLOCKS, Cursor
from indexer.store.deployment import Deployment
from indexer.store.fetch_queue import Delay, Job
from indexer.store.operator import Operator
from indexer.store.store import Store

__all__ = ["RING_BLOCKS", "Cursor", "Delay", "Deployment", "Job", "Lane", "Operator", "Store"]
