"""The database of the index: tables, migrations and connections, on SQLite and PostgreSQL.

One process writes (`open_writer`), any number read (`open_reader`).
"""

from indexer.db.denylist import Denial, Denials
from indexer.db.engine import SessionLost, open_operator, open_reader, open_writer, transaction
from indexer.db.heartbeat import Heartbeat
from indexer.db.models import DECODER_VERSION, REGISTRY, VOTES

__all__ = [
    "DECODER_VERSION",
    "REGISTRY",
    "VOTES",
    "Denial",
    "Denials",
    "Heartbeat",
    "SessionLost",
    "open_operator",
    "open_reader",
    "open_writer",
    "transaction",
]
