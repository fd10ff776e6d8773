"""Runs the migrations on the connection, and inside the transaction, that schema.py hands over."""

from alembic import context

from app.store.tables import Table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    transactional_ddl=True,
    render_as_batch=True,
    compare_type=True,
)
context.run_migrations()
