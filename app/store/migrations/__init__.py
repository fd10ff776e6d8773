"""Alembic's migrations. A released one never changes; a change of tables.py is a new file in versions/.

`tests/store/test_migrations.py` fails while the tables and the migrations differ, and takes a database of every
released revision, with data, to the newest. On SQLite a table that is rebuilt (batch mode) loses its triggers: a
migration that rebuilds `events` or `audit` makes them anew.
"""
