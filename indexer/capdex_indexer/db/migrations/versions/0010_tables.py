"""All tables as the models define them; 0001 to 0009 were of versions that cannot be upgraded.

Before 1.0, a change of the tables replaces this revision by one with the next number, and databases
of the old one are refused. Before the first revision that upgrades a database, write the tables of
that time out here: a migration must not change when the models do.
"""

from alembic import op

from capdex_indexer.db.models import DEPLOYMENT
from capdex_indexer.db.revision import REVISION

revision = REVISION
down_revision = None


def upgrade() -> None:
    """Make every table."""
    DEPLOYMENT.metadata.create_all(op.get_bind(), checkfirst=False)
