"""The first schema: studies, trials, measurements, events and runs."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "study",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("problem", sa.Text, nullable=False),
        sa.Column("measures_cost", sa.Boolean, nullable=False),
        sa.Column("strategy", sa.Text),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("trials", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_study"),
        sa.UniqueConstraint("name", name="uq_study_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "trial",
        sa.Column("study_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("retries", sa.Integer, nullable=False),
        sa.Column("params", sa.Text, nullable=False),
        sa.Column("fidelity", sa.Text),
        sa.Column("resume_from", sa.Integer),
        sa.Column("predicted_cost", sa.Text),
        sa.Column("predicted_value", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("value", sa.Double),
        sa.Column("failure", sa.Text),
        sa.Column("checkpoint", sa.Text),
        sa.Column("resume_checkpoint", sa.Text),
        sa.Column("overhead", sa.Double, nullable=False),
        sa.Column("owner", sa.Text),
        sa.Column("tags", sa.Text),
        sa.Column("comment", sa.Text),
        sa.Column("opened_at", sa.Double, nullable=False),
        sa.Column("paid_until", sa.Double, nullable=False),
        sa.Column("renewed_at", sa.Double, nullable=False),
        sa.Column("lease_until", sa.Double),
        sa.Column("finished_at", sa.Double),
        sa.PrimaryKeyConstraint("study_id", "number", name="pk_trial"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="fk_trial_study", ondelete="CASCADE"),
    )
    op.create_index("trial_by_version", "trial", ["study_id", "version"])
    op.create_index(
        "trial_in_flight",
        "trial",
        ["study_id", "number"],
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_table(
        "measurement",
        sa.Column("study_id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("trial", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("attempt", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("sequence", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("value", sa.Double),
        sa.Column("amount", sa.Double, nullable=False),
        sa.Column("cost", sa.Text),
        sa.Column("charged", sa.Boolean, nullable=False),
        sa.Column("fidelity", sa.Text),
        sa.Column("step", sa.Integer),
        sa.Column("metrics", sa.Text),
        sa.Column("saved", sa.Text),
        sa.Column("params", sa.Text),
        sa.Column("gradient", sa.Text),
        sa.Column("time", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("study_id", "trial", "attempt", "sequence", name="pk_measurement"),
        sa.ForeignKeyConstraint(
            ["study_id", "trial"],
            ["trial.study_id", "trial.number"],
            name="fk_measurement_trial",
            ondelete="CASCADE",
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "event",
        sa.Column("study_id", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("study_id", "version", name="pk_event"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="fk_event_study", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run",
        sa.Column("study_id", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("started_at", sa.Double, nullable=False),
        sa.Column("touched_at", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("study_id", "number", name="pk_run"),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name="fk_run_study", ondelete="CASCADE"),
        sqlite_with_rowid=False,
    )
