"""Runs the migrations on the open connection in `config.attributes["connection"]`.

The program decides about the transaction itself. `target_metadata` is handed in by the tests, since
this wing never imports the tables.
"""

from alembic import context

from tooltrail.migrations import VERSION_TABLE

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    version_table=VERSION_TABLE,
    target_metadata=context.config.attributes.get("target_metadata"),
    # SQLite cannot alter most things in place; a batch rebuilds the table instead.
    render_as_batch=connection.dialect.name == "sqlite",
    compare_server_default=True,
)
with context.begin_transaction():
    context.run_migrations()
