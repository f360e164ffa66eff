"""Whole numbers of 64 bits, and durations on the clocks of those who lived through them.

SQLite has kept 64 bits all along. The seconds of a run used to follow from when it was started and last touched.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_WHOLE = {
    "study": ("id", "version", "trials"),
    "trial": ("study_id", "number", "version", "attempt", "retries", "resume_from"),
    "measurement": ("study_id", "trial", "attempt", "sequence", "version", "step"),
    "event": ("study_id", "version"),
    "run": ("study_id", "number"),
}
_run = sa.table("run", *map(sa.column, ("study_id", "number", "started_at", "touched_at", "began", "seconds")))


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        for table, columns in _WHOLE.items():
            types = ", ".join(f"ALTER COLUMN {column} TYPE BIGINT" for column in columns)
            op.execute(f"ALTER TABLE {table} {types}")
    op.add_column("trial", sa.Column("lease", sa.Double))
    op.execute("UPDATE trial SET lease = lease_until - renewed_at WHERE lease_until IS NOT NULL")
    for column in ("began", "seconds", "lease"):
        op.add_column("run", sa.Column(column, sa.Double, nullable=False, server_default=sa.text("0")))
    _place_runs()


def _place_runs() -> None:
    """Gives runs their places on their study's own time, in which moments of several runs count once."""
    connection = op.get_bind()
    covered: dict[int, float] = {}
    reached: dict[int, float] = {}
    for study, number, start, end, *_ in connection.execute(sa.select(_run).order_by(_run.c.started_at)).all():
        overlap = max(0.0, reached.get(study, start) - start)
        began, seconds = covered.get(study, 0.0) - overlap, max(0.0, end - start)
        connection.execute(
            sa.update(_run)
            .where(_run.c.study_id == study, _run.c.number == number)
            .values(began=began, seconds=seconds)
        )
        covered[study] = max(covered.get(study, 0.0), began + seconds)
        reached[study] = max(reached.get(study, end), end)
