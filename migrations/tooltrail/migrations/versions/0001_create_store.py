"""Create every table, and the triggers that keep the evidence append-only.

Revision ID: 0001
Revises: none
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
UUID = sa.LargeBinary(16).with_variant(postgresql.UUID(as_uuid=True), "postgresql")
TIME = sa.Text().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")

TABLES = (
    "policies",
    "tools",
    "agents",
    "store_info",
    "bodies",
    "artifacts",
    "sessions",
    "messages",
    "invocations",
    "complete_outputs",
    "output_streams",
    "canonical_results",
    "receipts",
    "invocation_artifacts",
    "omissions",
    "redactions",
    "structured_outputs",
    "ledger_entries",
    "ledger_heads",
    "checkpoints",
    "tombstones",
    "holds",
)
"""In the order in which they can be created."""

MUTABLE = ("store_info", "ledger_heads", "invocations", "bodies")
"""Not append-only as a whole: each has a rule of its own below."""

FROZEN_AT_START = (
    "key",
    "id",
    "session_key",
    "seq",
    "call_id",
    "tool_name",
    "tool_digest",
    "family",
    "policy_digest",
    "arguments_digest",
    "arguments_preview",
    "started_at",
)
"""Columns of an invocation that its end must not touch."""


def upgrade() -> None:
    _create_documents()
    _create_payloads()
    _create_sessions()
    _create_invocations()
    _create_surfaces()
    _create_accounts()
    _create_ledger()
    _create_retention()
    if op.get_bind().dialect.name == "postgresql":
        _guard_postgresql()
    else:
        _guard_sqlite()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION tooltrail_refuse()")
        op.execute("DROP FUNCTION tooltrail_refuse_unless_erased()")


def _create_documents() -> None:
    op.create_table(
        "policies",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_policies")),
    )
    op.create_table(
        "tools",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_tools")),
    )
    op.create_index(op.f("ix_tools_name"), "tools", ["name"], unique=False)
    op.create_table(
        "agents",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=True),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_agents")),
    )
    op.create_index(op.f("ix_agents_agent_id"), "agents", ["agent_id"], unique=False)
    op.create_table(
        "store_info",
        sa.Column("key", BIG, autoincrement=False, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("format", BIG, nullable=False),
        sa.Column("artifact_root", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.CheckConstraint("key = 1", name=op.f("ck_store_info_single")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_store_info")),
    )


def _create_payloads() -> None:
    op.create_table(
        "bodies",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("encoding", sa.Text(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint("encoding IN ('raw', 'zstd')", name=op.f("ck_bodies_encoding")),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_bodies")),
    )
    op.create_table(
        "artifacts",
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("stored_size", BIG, nullable=False),
        sa.Column("line_count", BIG, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("path", name=op.f("pk_artifacts")),
    )


def _create_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("key", BIG, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("parent_key", BIG, nullable=True),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("agent_digest", sa.Text(), nullable=True),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("environment", sa.Text(), nullable=False),
        sa.Column("opened_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_digest"], ["agents.digest"], name=op.f("fk_sessions_agent_digest")
        ),
        sa.ForeignKeyConstraint(
            ["parent_key"], ["sessions.key"], name=op.f("fk_sessions_parent_key")
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_sessions")),
        sa.UniqueConstraint("id", name=op.f("uq_sessions_id")),
    )
    op.create_index(op.f("ix_sessions_opened_at"), "sessions", ["opened_at"], unique=False)
    op.create_index(op.f("ix_sessions_parent_key"), "sessions", ["parent_key"], unique=False)
    op.create_table(
        "messages",
        sa.Column("key", BIG, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("session_key", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("body_digest", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["body_digest"], ["bodies.digest"], name=op.f("fk_messages_body_digest")
        ),
        sa.ForeignKeyConstraint(
            ["session_key"], ["sessions.key"], name=op.f("fk_messages_session_key")
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_messages")),
        sa.UniqueConstraint("id", name=op.f("uq_messages_id")),
        sa.UniqueConstraint("session_key", "seq", name=op.f("uq_messages_session_key_seq")),
    )


def _create_invocations() -> None:
    op.create_table(
        "invocations",
        sa.Column("key", BIG, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("session_key", BIG, nullable=False),
        sa.Column("seq", BIG, nullable=False),
        sa.Column("call_id", sa.Text(), nullable=True),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("tool_digest", sa.Text(), nullable=True),
        sa.Column("family", sa.Text(), nullable=False),
        sa.Column("policy_digest", sa.Text(), nullable=False),
        sa.Column("arguments_digest", sa.Text(), nullable=False),
        sa.Column("arguments_preview", sa.Text(), nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("duration_ms", BIG, nullable=True),
        sa.Column("error_kind", sa.Text(), nullable=True),
        sa.Column("exit_status", BIG, nullable=True),
        sa.Column("signal", BIG, nullable=True),
        sa.Column("timed_out", sa.Boolean(), nullable=True),
        sa.Column("output_size", BIG, nullable=True),
        sa.Column("truncated", sa.Boolean(), nullable=True),
        sa.CheckConstraint(
            "(state = 'started') = (finished_at IS NULL)", name=op.f("ck_invocations_finished")
        ),
        sa.CheckConstraint(
            "state IN ('started', 'success', 'error', 'interrupted', 'denied', 'cancelled')",
            name=op.f("ck_invocations_state"),
        ),
        sa.ForeignKeyConstraint(
            ["arguments_digest"], ["bodies.digest"], name=op.f("fk_invocations_arguments_digest")
        ),
        sa.ForeignKeyConstraint(
            ["policy_digest"], ["policies.digest"], name=op.f("fk_invocations_policy_digest")
        ),
        sa.ForeignKeyConstraint(
            ["session_key"], ["sessions.key"], name=op.f("fk_invocations_session_key")
        ),
        sa.ForeignKeyConstraint(
            ["tool_digest"], ["tools.digest"], name=op.f("fk_invocations_tool_digest")
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_invocations")),
        sa.UniqueConstraint("id", name=op.f("uq_invocations_id")),
        sa.UniqueConstraint("session_key", "seq", name=op.f("uq_invocations_session_key_seq")),
    )
    op.create_index(
        op.f("ix_invocations_call_id"),
        "invocations",
        ["call_id"],
        unique=False,
        sqlite_where=sa.text("call_id IS NOT NULL"),
        postgresql_where=sa.text("call_id IS NOT NULL"),
        # Providers make call ids longer than a b-tree page of PostgreSQL can hold.
        postgresql_using="hash",
    )
    op.create_index(
        op.f("ix_invocations_error_kind"),
        "invocations",
        ["error_kind"],
        unique=False,
        sqlite_where=sa.text("error_kind IS NOT NULL"),
        postgresql_where=sa.text("error_kind IS NOT NULL"),
    )
    op.create_index(op.f("ix_invocations_started_at"), "invocations", ["started_at"], unique=False)
    op.create_index(
        op.f("ix_invocations_state"),
        "invocations",
        ["state"],
        unique=False,
        sqlite_where=sa.text("state <> 'success'"),
        postgresql_where=sa.text("state <> 'success'"),
    )
    op.create_index(
        op.f("ix_invocations_tool_name_started_at"),
        "invocations",
        ["tool_name", "started_at"],
        unique=False,
    )


def _create_surfaces() -> None:
    op.create_table(
        "complete_outputs",
        sa.Column("invocation_key", BIG, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["invocation_key"], ["invocations.key"], name=op.f("fk_complete_outputs_invocation_key")
        ),
        sa.PrimaryKeyConstraint("invocation_key", name=op.f("pk_complete_outputs")),
    )
    op.create_table(
        "output_streams",
        sa.Column("invocation_key", BIG, nullable=False),
        sa.Column("n", BIG, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("line_count", BIG, nullable=False),
        sa.Column("produced_size", BIG, nullable=False),
        sa.Column("produced_line_count", BIG, nullable=False),
        sa.Column("loss_reason", sa.Text(), nullable=True),
        sa.Column("artifact_path", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["artifact_path"], ["artifacts.path"], name=op.f("fk_output_streams_artifact_path")
        ),
        sa.ForeignKeyConstraint(
            ["invocation_key"], ["invocations.key"], name=op.f("fk_output_streams_invocation_key")
        ),
        sa.PrimaryKeyConstraint("invocation_key", "n", name=op.f("pk_output_streams")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_output_streams_digest"), "output_streams", ["digest"], unique=False)
    op.create_table(
        "canonical_results",
        sa.Column("invocation_key", BIG, nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("summary_text", sa.Text(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["invocation_key"],
            ["invocations.key"],
            name=op.f("fk_canonical_results_invocation_key"),
        ),
        sa.PrimaryKeyConstraint("invocation_key", name=op.f("pk_canonical_results")),
    )
    op.create_table(
        "receipts",
        sa.Column("invocation_key", BIG, nullable=False),
        sa.Column("n", BIG, nullable=False),
        sa.Column("renderer_name", sa.Text(), nullable=False),
        sa.Column("renderer_version", BIG, nullable=False),
        sa.Column("policy_digest", sa.Text(), nullable=False),
        sa.Column("body_digest", sa.Text(), nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["body_digest"], ["bodies.digest"], name=op.f("fk_receipts_body_digest")
        ),
        sa.ForeignKeyConstraint(
            ["invocation_key"], ["invocations.key"], name=op.f("fk_receipts_invocation_key")
        ),
        sa.ForeignKeyConstraint(
            ["policy_digest"], ["policies.digest"], name=op.f("fk_receipts_policy_digest")
        ),
        sa.PrimaryKeyConstraint("invocation_key", "n", name=op.f("pk_receipts")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "invocation_artifacts",
        sa.Column("invocation_key", BIG, nullable=False),
        sa.Column("n", BIG, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["invocation_key"],
            ["invocations.key"],
            name=op.f("fk_invocation_artifacts_invocation_key"),
        ),
        sa.ForeignKeyConstraint(
            ["path"], ["artifacts.path"], name=op.f("fk_invocation_artifacts_path")
        ),
        sa.PrimaryKeyConstraint("invocation_key", "n", name=op.f("pk_invocation_artifacts")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_invocation_artifacts_path"), "invocation_artifacts", ["path"], unique=False
    )


def _create_accounts() -> None:
    op.create_table(
        "omissions",
        sa.Column("invocation_key", BIG, nullable=False),
        sa.Column("n", BIG, nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.Column("before_count", BIG, nullable=False),
        sa.Column("after_count", BIG, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.CheckConstraint("after_count < before_count", name=op.f("ck_omissions_counts")),
        sa.ForeignKeyConstraint(
            ["invocation_key"], ["invocations.key"], name=op.f("fk_omissions_invocation_key")
        ),
        sa.PrimaryKeyConstraint("invocation_key", "n", name=op.f("pk_omissions")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "redactions",
        sa.Column("invocation_key", BIG, nullable=False),
        sa.Column("n", BIG, nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("match_count", BIG, nullable=False),
        sa.ForeignKeyConstraint(
            ["invocation_key"], ["invocations.key"], name=op.f("fk_redactions_invocation_key")
        ),
        sa.PrimaryKeyConstraint("invocation_key", "n", name=op.f("pk_redactions")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "structured_outputs",
        sa.Column("invocation_key", BIG, nullable=False),
        sa.Column("agent_digest", sa.Text(), nullable=True),
        sa.Column("schema_digest", sa.Text(), nullable=False),
        sa.Column("attempt", BIG, nullable=False),
        sa.Column("valid", sa.Boolean(), nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["agent_digest"], ["agents.digest"], name=op.f("fk_structured_outputs_agent_digest")
        ),
        sa.ForeignKeyConstraint(
            ["invocation_key"],
            ["invocations.key"],
            name=op.f("fk_structured_outputs_invocation_key"),
        ),
        sa.PrimaryKeyConstraint("invocation_key", name=op.f("pk_structured_outputs")),
    )


def _create_ledger() -> None:
    op.create_table(
        "ledger_entries",
        sa.Column("session_key", BIG, nullable=False),
        sa.Column("n", BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject_id", UUID, nullable=False),
        sa.Column("happened_at", TIME, nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["session_key"], ["sessions.key"], name=op.f("fk_ledger_entries_session_key")
        ),
        sa.PrimaryKeyConstraint("session_key", "n", name=op.f("pk_ledger_entries")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "ledger_heads",
        sa.Column("session_key", BIG, nullable=False),
        sa.Column("entry_count", BIG, nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("next_seq", BIG, nullable=False),
        sa.Column("closed_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["session_key"], ["sessions.key"], name=op.f("fk_ledger_heads_session_key")
        ),
        sa.PrimaryKeyConstraint("session_key", name=op.f("pk_ledger_heads")),
    )
    op.create_table(
        "checkpoints",
        sa.Column("key", BIG, nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.Column("document", sa.Text(), nullable=False),
        sa.Column("root", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=True),
        sa.Column("signature", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_checkpoints")),
    )


def _create_retention() -> None:
    op.create_table(
        "tombstones",
        sa.Column("key", BIG, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("size", BIG, nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("rule", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("removed_at", TIME, nullable=False),
        sa.CheckConstraint("kind IN ('body', 'artifact')", name=op.f("ck_tombstones_kind")),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_tombstones")),
    )
    op.create_index(op.f("ix_tombstones_subject"), "tombstones", ["subject"], unique=False)
    op.create_table(
        "holds",
        sa.Column("key", BIG, nullable=False),
        sa.Column("id", UUID, nullable=False),
        sa.Column("session_key", BIG, nullable=True),
        sa.Column("invocation_key", BIG, nullable=True),
        sa.Column("releases_key", BIG, nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("created_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["invocation_key"], ["invocations.key"], name=op.f("fk_holds_invocation_key")
        ),
        sa.ForeignKeyConstraint(
            ["releases_key"], ["holds.key"], name=op.f("fk_holds_releases_key")
        ),
        sa.ForeignKeyConstraint(
            ["session_key"], ["sessions.key"], name=op.f("fk_holds_session_key")
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_holds")),
        sa.UniqueConstraint("id", name=op.f("uq_holds_id")),
    )
    op.create_index(op.f("ix_holds_invocation_key"), "holds", ["invocation_key"], unique=False)
    op.create_index(op.f("ix_holds_session_key"), "holds", ["session_key"], unique=False)


# A rule is a condition on OLD and NEW under which an UPDATE is refused; NULL-safe on both engines.
def _update_rules(distinct: str) -> dict[str, str]:
    frozen = " OR ".join(f"NEW.{c} {distinct} OLD.{c}" for c in FROZEN_AT_START)
    return {
        "invocations": f"OLD.state <> 'started' OR NEW.state = 'started' OR {frozen}",
        # Erased with a tombstone, or put back because the same bytes were recorded anew.
        "bodies": (
            f"NEW.digest {distinct} OLD.digest OR NEW.size {distinct} OLD.size "
            "OR (OLD.data IS NULL) = (NEW.data IS NULL) "
            f"OR (NEW.data IS NULL AND (NEW.encoding {distinct} OLD.encoding "
            "OR NOT EXISTS (SELECT 1 FROM tombstones t "
            "WHERE t.kind = 'body' AND t.subject = OLD.digest)))"
        ),
        "ledger_heads": (
            f"NEW.session_key {distinct} OLD.session_key OR NEW.entry_count <= OLD.entry_count "
            "OR NEW.next_seq < OLD.next_seq OR OLD.closed_at IS NOT NULL "
            f"AND NEW.closed_at {distinct} OLD.closed_at"
        ),
        "store_info": (f"NEW.id {distinct} OLD.id OR NEW.created_at {distinct} OLD.created_at"),
    }


def _guard_sqlite() -> None:
    rules = _update_rules("IS NOT")
    for table in TABLES:
        refuse = f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        op.execute(f"CREATE TRIGGER {table}_no_delete BEFORE DELETE ON {table} {refuse}")
        when = f"WHEN {rules[table]} " if table in MUTABLE else ""
        op.execute(f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} {when}{refuse}")


def _guard_postgresql() -> None:
    op.execute(
        "CREATE FUNCTION tooltrail_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$"
    )
    rules = _update_rules("IS DISTINCT FROM")
    # PostgreSQL allows no subquery in WHEN, so the rule of bodies is a function of its own.
    op.execute(
        "CREATE FUNCTION tooltrail_refuse_unless_erased() RETURNS trigger LANGUAGE plpgsql AS $$ "
        f"BEGIN IF {rules['bodies']} THEN "
        "RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END IF; RETURN NEW; END $$"
    )
    for table in TABLES:
        for event, level in (("DELETE", "ROW"), ("TRUNCATE", "STATEMENT")):
            op.execute(
                f"CREATE TRIGGER {table}_no_{event.lower()} BEFORE {event} ON {table} "
                f"FOR EACH {level} EXECUTE FUNCTION tooltrail_refuse()"
            )
        when = f"WHEN ({rules[table]}) " if table in MUTABLE and table != "bodies" else ""
        function = "tooltrail_refuse_unless_erased" if table == "bodies" else "tooltrail_refuse"
        op.execute(
            f"CREATE TRIGGER {table}_no_update BEFORE UPDATE ON {table} "
            f"FOR EACH ROW {when}EXECUTE FUNCTION {function}()"
        )
