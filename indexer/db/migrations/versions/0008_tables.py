"""All tables as the models define them; 0001 to 0007 were of versions that cannot be upgraded.

Before 1.0, a change of the tables replaces this revision by one with the next number, and databases
of the old one are refused. Before the first revision that upgrades a database, write the tables of
that time out here: a migration must not change when the models do.
"""

from alembic import op
from sqlalchemy import Column, ForeignKey, Integer, Text
from sqlalchemy.dialects import postgresql

from indexer.db.columns import BIG
from indexer.db.denylist import DenialRow
from indexer.db.full_text import FIELDS
from indexer.db.heartbeat import HeartbeatRow
from indexer.db.models import IndexTable

revision = "0008"
down_revision = None

OUTSIDE_OF_MODELS = (DenialRow, HeartbeatRow)  # tables that exist once their modules are imported


def upgrade() -> None:
    """Make every table."""
    connection = op.get_bind()
    IndexTable.metadata.create_all(connection, checkfirst=False)
    if connection.dialect.name == "sqlite":
        # The tokens come from indexer/projection/tokenizer.py; ascii leaves them whole.
        fields = ", ".join(FIELDS)
        op.execute(f"CREATE VIRTUAL TABLE document USING fts5({fields}, tokenize='ascii')")
        return
    release = ForeignKey("release.id", ondelete="CASCADE")
    op.create_table(
        "document",
        Column("release_id", BIG, release, primary_key=True, autoincrement=False),
        *(Column(field, Text(), nullable=False) for field in FIELDS),
        Column("length", Integer(), nullable=False),
        Column("tokens", postgresql.TSVECTOR(), nullable=False),
    )
    op.create_index("ix_document_tokens", "document", ["tokens"], postgresql_using="gin")
