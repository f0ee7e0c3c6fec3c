"""Entry point of alembic: runs the migrations on the connection in the config's attributes."""

from alembic import context

from capdex_indexer.db.models import DEPLOYMENT

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=DEPLOYMENT.metadata,  # names the constraints
    transactional_ddl=False,  # the caller's transaction is the only one
)
context.run_migrations()
