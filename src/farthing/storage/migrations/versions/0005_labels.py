"""The label of the worker of each attempt at a trial. Before, workers had none."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("trial", sa.Column("labels", sa.Text))
