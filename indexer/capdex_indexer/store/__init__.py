"""The one writer of the index: events, releases and cursor change in one transaction.

`Store` follows the chain and records verdicts; `Operator` writes beside it what an operator
orders.
"""

from capdex_indexer.db.columns import Lane
from capdex_indexer.store.deployment import Deployment
from capdex_indexer.store.fetch_queue import Delay, Job
from capdex_indexer.store.operator import Operator
from capdex_indexer.store.store import Store

__all__ = ["Delay", "Deployment", "Job", "Lane", "Operator", "Store"]
