"""When a worker took each trial. Of those of before it is not known, so that they count from when they were opened."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.add_column("trial", sa.Column("started_at", sa.Double))
    op.execute("UPDATE trial SET started_at = opened_at WHERE state <> 'pending'")
