"""What alembic runs: the migrations, on the connection it is given."""

from alembic import context

from indexer.db.models import IndexTable

# The full-text documents are of another kind on each database; indexer/db/full_text.py knows them.
FULL_TEXT = "document"


def _ours(name: str | None, kind: str, _: object) -> bool:
    return not (kind == "table" and name is not None and name.startswith(FULL_TEXT))


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=IndexTable.metadata,
    include_name=_ours,
    transactional_ddl=False,  # the caller's transaction is the only one
)
context.run_migrations()
