"""The first released schema: cohorts, step-throughs and their events, evidence, jobs, models, audit trail."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID, HASH, OWNER, NAME, MOMENT = sa.String(36), sa.String(64), sa.String(200), sa.String(200), sa.String(27)


def upgrade() -> None:
    op.create_table(
        "cohorts",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", OWNER, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("content_hash", HASH, nullable=False),
        sa.Column("schema_yaml", sa.Text, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("deleted_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_cohorts"),
        sa.UniqueConstraint("owner", "name", "version", name="uq_cohorts_owner_name_version"),
    )
    op.create_index("ix_cohorts_content_hash", "cohorts", ["content_hash"])
    op.create_table(
        "cohort_data",
        sa.Column("cohort_id", ID, nullable=False),
        sa.Column("sha256", HASH, nullable=False),
        sa.Column("parquet", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("cohort_id", name="pk_cohort_data"),
        sa.ForeignKeyConstraint(["cohort_id"], ["cohorts.id"], name="fk_cohort_data_cohort_id"),
    )
    op.create_table(
        "step_throughs",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", OWNER, nullable=False),
        sa.Column("cohort_id", ID, nullable=False),
        sa.Column("cohort_hash", HASH, nullable=False),
        sa.Column("model_fingerprint", NAME, nullable=False),
        sa.Column("title", NAME, nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("length", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("head_hash", HASH, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_step_throughs"),
        sa.ForeignKeyConstraint(["cohort_id"], ["cohorts.id"], name="fk_step_throughs_cohort_id"),
    )
    op.create_index("ix_step_throughs_owner_updated_at", "step_throughs", ["owner", "updated_at"])
    op.create_table(
        "events",
        sa.Column("step_through_id", ID, nullable=False),
        *_link_columns(),
        sa.PrimaryKeyConstraint("step_through_id", "sequence", name="pk_events"),
        sa.ForeignKeyConstraint(["step_through_id"], ["step_throughs.id"], name="fk_events_step_through_id"),
        sa.UniqueConstraint("step_through_id", "event_id", name="uq_events_step_through_id_event_id"),
    )
    op.create_table("audit", *_link_columns(), sa.PrimaryKeyConstraint("sequence", name="pk_audit"))
    op.create_table(
        "evidence",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", OWNER, nullable=False),
        sa.Column("cohort_hash", HASH, nullable=False),
        sa.Column("model_fingerprint", NAME, nullable=False),
        sa.Column("settings_hash", HASH, nullable=False),
        sa.Column("settings", sa.Text, nullable=False),
        sa.Column("results", sa.Text, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_evidence"),
        sa.UniqueConstraint(
            "owner",
            "cohort_hash",
            "model_fingerprint",
            "settings_hash",
            name="uq_evidence_owner_cohort_hash_model_fingerprint_settings_hash",
        ),
    )
    op.create_index("ix_evidence_cohort_hash", "evidence", ["cohort_hash"])
    op.create_table(
        "jobs",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", OWNER, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("config", sa.Text, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("progress", sa.Double, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("log_path", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer),
        sa.Column("process", sa.Text),
        sa.Column("claim", ID),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("result", sa.Text),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("queued_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("heartbeat_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )
    op.create_index("ix_jobs_owner_created_at", "jobs", ["owner", "created_at"])
    op.create_index("ix_jobs_state", "jobs", ["state"])
    op.create_table(
        "models",
        sa.Column("id", ID, nullable=False),
        sa.Column("owner", OWNER, nullable=False),
        sa.Column("name", NAME, nullable=False),
        sa.Column("fingerprint", NAME, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("card", sa.Text, nullable=False),
        sa.Column("shared", sa.Boolean, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_models"),
        sa.UniqueConstraint("owner", "fingerprint", name="uq_models_owner_fingerprint"),
    )
    postgresql = op.get_bind().dialect.name == "postgresql"
    if postgresql:
        op.execute(POSTGRESQL_REFUSAL)
    for table, key in (("events", "step_through_id = NEW.step_through_id AND "), ("audit", "")):
        for statement in _postgresql_triggers(table) if postgresql else _sqlite_triggers(table, key):
            op.execute(statement)


def _link_columns() -> list[sa.Column]:
    return [
        sa.Column("sequence", sa.Integer, autoincrement=False, nullable=False),
        sa.Column("event_id", ID, nullable=False),
        sa.Column("kind", sa.String(64), nullable=False),
        sa.Column("recorded_at", MOMENT, nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("previous_hash", HASH, nullable=False),
        sa.Column("hash", HASH, nullable=False),
    ]


def _sqlite_triggers(table: str, key: str) -> list[str]:
    refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    taken = f"SELECT 1 FROM {table} WHERE {key}(sequence = NEW.sequence OR event_id = NEW.event_id)"
    return [
        f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}",
        # INSERT OR REPLACE would remove the old row without asking the trigger above.
        f"CREATE TRIGGER {table}_no_replace BEFORE INSERT ON {table} WHEN EXISTS ({taken}) {refuse}",
    ]


POSTGRESQL_REFUSAL = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$
"""


def _postgresql_triggers(table: str) -> list[str]:
    refuse = "EXECUTE FUNCTION refuse_change()"
    return [
        f"CREATE TRIGGER {table}_no_change BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW {refuse}",
        f"CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table} FOR EACH STATEMENT {refuse}",
    ]


def downgrade() -> None:
    raise RuntimeError("The store never goes back: restore the back-up made before migrating.")
