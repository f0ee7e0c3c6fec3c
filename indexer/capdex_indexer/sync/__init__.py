"""The loop from chain to rows: read a step, check it against the contract, apply it, report it."""

from capdex_indexer.sync.log_completeness import Checkpoint, MissingLogs, check_logs
from capdex_indexer.sync.loop import SyncProgress, follow_chain

__all__ = ["Checkpoint", "MissingLogs", "SyncProgress", "check_logs", "follow_chain"]
