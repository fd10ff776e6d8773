"""A step-through can be deleted: its events go, and a tombstone stays with the hash of each of them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

IS_DELETED = "SELECT 1 FROM step_throughs WHERE id = OLD.step_through_id AND deleted_at IS NOT NULL"


def upgrade() -> None:
    op.add_column("step_throughs", sa.Column("deleted_at", sa.String(27), nullable=True))
    op.add_column("step_throughs", sa.Column("link_hashes", sa.Text, nullable=True))
    if op.get_bind().dialect.name == "postgresql":
        op.execute(POSTGRESQL_REFUSAL)
        op.execute("DROP TRIGGER events_no_change ON events")
        op.execute(
            "CREATE TRIGGER events_no_change BEFORE UPDATE OR DELETE ON events FOR EACH ROW "
            "EXECUTE FUNCTION refuse_change_of_events()"
        )
        return
    op.execute("DROP TRIGGER events_no_delete")
    op.execute(
        f"CREATE TRIGGER events_no_delete BEFORE DELETE ON events WHEN NOT EXISTS ({IS_DELETED}) "
        "BEGIN SELECT RAISE(ABORT, 'events is append-only'); END"
    )


POSTGRESQL_REFUSAL = f"""
CREATE FUNCTION refuse_change_of_events() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN
  IF TG_OP = 'DELETE' AND EXISTS ({IS_DELETED}) THEN RETURN OLD; END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$
"""


def downgrade() -> None:
    raise RuntimeError("The store never goes back: restore the back-up made before migrating.")
