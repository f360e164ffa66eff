"""Who suggests for all, how long workers waited for suggestions, and what a second of an attempt costs."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("study", sa.Column("suggester", sa.Text))
    op.add_column("study", sa.Column("suggester_renewed_at", sa.Double))
    op.add_column("study", sa.Column("suggester_lease", sa.Double))
    op.add_column("trial", sa.Column("waited", sa.Double, nullable=False, server_default=sa.text("0")))
    op.add_column("trial", sa.Column("rate", sa.Double))
    op.add_column("measurement", sa.Column("rate", sa.Double))
