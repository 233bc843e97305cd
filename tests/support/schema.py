"""The tables of a store, as SQLAlchemy Core knows them: what each column means.

`schema_scripts` writes the statements of the head revision from these tables, and tests compare
stores with them. The package itself speaks SQL, and imports no toolkit to read or write rows.

Each frame of a journal is one row of `ledger_entries`, for ever. Every other evidence table is
derived from these rows and from bodies, and `verify` compares the two. A row says with `entry` (and
an invocation with `start_entry` and `end_entry`) which ledger entry it comes from.

Types: ids are UUIDs, times are UTC to the microsecond, digests and hashes are 32 bytes of SHA-256.
SQLite keeps ids and digests as BLOBs and times as integers (microseconds since 1970), so that a row
is short; the views spell them for people.
"""

from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import postgresql

# SQLite makes a rowid alias of INTEGER only; psycopg overflows on a plain Integer.
Int64 = BigInteger().with_variant(Integer(), "sqlite")

AnyText = Text()
"""Text in which NUL and lone surrogates are escapes; see `Connection.text`."""

Uuid16 = LargeBinary(16).with_variant(postgresql.UUID(as_uuid=True), "postgresql")
"""A UUID: native on PostgreSQL, 16 bytes on SQLite, in the same order."""

Moment = Integer().with_variant(postgresql.TIMESTAMP(timezone=True), "postgresql")
"""A time: timestamptz on PostgreSQL, microseconds since 1970 on SQLite."""

Sha256 = LargeBinary(32)
"""A SHA-256 digest in 32 bytes."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Small child rows read 30 % faster from a clustered table.
_CLUSTERED: Final[dict[str, Any]] = {"sqlite_with_rowid": False}


def _key() -> Column[int]:
    return Column("key", Int64, primary_key=True)


def _partial(*columns: str, where: str, using: str = "btree") -> Index:
    few = text(where)
    return Index(None, *columns, sqlite_where=few, postgresql_where=few, postgresql_using=using)


store_info = Table(
    "store_info",
    metadata,
    Column("key", Int64, primary_key=True, autoincrement=False),
    Column("id", Uuid16, nullable=False),
    Column("format", Int64, nullable=False),
    Column("artifact_root", AnyText, nullable=False),
    Column("created_at", Moment, nullable=False),
    CheckConstraint("key = 1", name="single"),
)
"""One row: what this store is and where its artifacts are."""

journals = Table(
    "journals",
    metadata,
    _key(),
    Column("id", Uuid16, nullable=False, unique=True),
    Column("host", AnyText, nullable=False),
    Column("spool", AnyText, nullable=False),
    Column("branch_of", Uuid16),
    Column("entry_count", Int64, nullable=False),
    Column("next_index", Int64, nullable=False),
    Column("head", LargeBinary(32)),
    Column("segment", Int64, nullable=False),
    Column("segment_offset", Int64, nullable=False),
    Column("frame_offset", Int64),
    Column("created_at", Moment, nullable=False),
    Column("ingested_at", Moment, nullable=False),
)
"""Each journal that was ingested, its head, and the cursor behind its last ingested frame.

`head` is the hash of the last ingested frame and `frame_offset` its first byte; both are NULL right
behind damage. `next_index` is the index of the next frame: a journal that has fewer frames was cut
off. `entry_count` counts the ledger entries, fewer than `next_index` where frames were damaged.

A journal whose folder was restored from an older copy goes on differently than the ledger. What
was recorded since is a branch: a journal of its own, with the id of the first one in `branch_of`.
"""

ledger_entries = Table(
    "ledger_entries",
    metadata,
    Column("journal_key", Int64, primary_key=True, autoincrement=False),
    Column("n", Int64, primary_key=True, autoincrement=False),
    Column("kind", Text(), nullable=False),
    Column("subject_id", Uuid16),
    Column("fact", LargeBinary, nullable=False),
    Column("hash", LargeBinary(32), nullable=False),
    **_CLUSTERED,
)
"""Every frame: the packed fact (`pack_fact`), and the hash that chains it to the one before."""

bodies = Table(
    "bodies",
    metadata,
    _key(),
    Column("digest", Sha256, nullable=False, unique=True),
    Column("size", Int64, nullable=False),
    Column("encoding", Text(), nullable=False),
    Column("data", LargeBinary()),
    CheckConstraint("encoding IN ('raw', 'zstd')", name="encoding"),
)
"""Short byte strings, stored once by digest. Erased bytes leave the row."""

artifacts = Table(
    "artifacts",
    metadata,
    _key(),
    Column("digest", Sha256, nullable=False, unique=True),
    Column("size", Int64, nullable=False),
    Column("stored_size", Int64, nullable=False),
    Column("line_count", Int64, nullable=False),
    Column("created_at", Moment, nullable=False),
)
"""Objects in the artifact sink. The path follows from the digest."""

pending_artifacts = Table(
    "pending_artifacts",
    metadata,
    Column("digest", Sha256, primary_key=True),
    Column("journal_key", Int64, primary_key=True, autoincrement=False),
    Column("spooled", AnyText),
    Column("role", AnyText, nullable=False),
    Column("size", Int64, nullable=False),
    Column("line_count", Int64, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("noticed_at", Moment, nullable=False),
)
"""Not evidence: content that waits for the sink, which could not be written.

It is the file `spooled` of the journal's spool; a body where that is NULL. Several journals may
have the same content.
"""

open_answers = Table(
    "open_answers",
    metadata,
    Column("message_id", Uuid16, primary_key=True),
    Column("journal_key", Int64, nullable=False),
    Column("entry", Int64, nullable=False),
)
"""Not evidence: answers that are being streamed, and whose message was not recorded yet.

The ledger entry is the fact `answer.started`, which says everything else.
"""

sessions = Table(
    "sessions",
    metadata,
    _key(),
    Column("id", Uuid16, nullable=False, unique=True),
    Column("name", AnyText),
    Column("parent_id", Uuid16),
    Column("title", AnyText),
    Column("agent", AnyText),
    Column("environment", Sha256),
    Column("opened_at", Moment, nullable=False),
    Column("closed_at", Moment),
    Column("close_reason", AnyText),
    Column("journal_key", Int64, nullable=False),
    Column("open_journal_key", Int64),
    Column("entry", Int64),
    Column("close_journal_key", Int64),
    Column("close_entry", Int64),
    Index(None, "opened_at"),
    _partial("parent_id", where="parent_id IS NOT NULL"),
    _partial("name", where="name IS NOT NULL"),
    _partial("agent", where="agent IS NOT NULL"),
)
"""Conversations. `entry` is NULL while only facts of the session were seen, not its opening.

A session may have facts in several journals: `journal_key` is the one whose fact came first,
`open_journal_key` and `close_journal_key` belong to `entry` and `close_entry`.
"""

messages = Table(
    "messages",
    metadata,
    _key(),
    Column("id", Uuid16, nullable=False, unique=True),
    Column("session_key", Int64, nullable=False),
    Column("seq", Int64, nullable=False),
    Column("role", AnyText, nullable=False),
    Column("text", Sha256, nullable=False),
    Column("document", Sha256),
    Column("payload", Sha256),
    Column("wire_format", AnyText),
    Column("created_at", Moment, nullable=False),
    Column("journal_key", Int64, nullable=False),
    Column("entry", Int64, nullable=False),
    UniqueConstraint("session_key", "seq"),
)
"""Entries of a conversation that are not tool calls, and the facts that stand among them."""

tools = Table(
    "tools",
    metadata,
    _key(),
    Column("digest", Sha256, nullable=False, unique=True),
    Column("name", AnyText, nullable=False, index=True),
    Column("created_at", Moment, nullable=False),
)
"""Versions of tools that were offered to models. The definition is a body."""

tool_offers = Table(
    "tool_offers",
    metadata,
    Column("message_key", Int64, primary_key=True, autoincrement=False),
    Column("position", Int64, primary_key=True, autoincrement=False),
    Column("tool", Sha256, nullable=False),
    Index(None, "tool"),
    **_CLUSTERED,
)
"""The tools that are on offer from a message on, in their order."""

agent_legs = Table(
    "agent_legs",
    metadata,
    Column("message_key", Int64, primary_key=True, autoincrement=False),
    Column("session_key", Int64, nullable=False, index=True),
    Column("run_id", Uuid16, nullable=False),
    Column("position", Int64, nullable=False),
    Column("tier", AnyText, nullable=False),
    Column("model", AnyText, nullable=False),
    Column("wire_format", AnyText, nullable=False),
    Column("agent_id", AnyText, nullable=False),
    Column("agent", Sha256, nullable=False),
    Column("agent_version", AnyText),
    Column("schema", Sha256),
    Column("started_at", Moment, nullable=False, index=True),
    Index(None, "agent_id", "started_at"),
)
"""How a leg of an agent run began. The whole of it is the document of the message."""

agent_outcomes = Table(
    "agent_outcomes",
    metadata,
    Column("message_key", Int64, primary_key=True, autoincrement=False),
    Column("session_key", Int64, nullable=False, index=True),
    Column("outcome", Text(), nullable=False),
    Column("escalated_to", AnyText),
    Column("attempt_count", Int64, nullable=False),
    Column("duration_ms", Int64, nullable=False),
)
"""How a leg of an agent run ended."""

LARGE_BYTES: Final = 32_768
"""Outputs of this size and more are indexed: some hundredth of all."""

STATES: Final = ("started", "success", "error", "interrupted", "denied", "cancelled")

invocations = Table(
    "invocations",
    metadata,
    _key(),
    Column("id", Uuid16, nullable=False, unique=True),
    Column("session_key", Int64, nullable=False),
    Column("seq", Int64, nullable=False),
    Column("state", Text(), nullable=False),
    Column("tool_name", AnyText, nullable=False),
    Column("family", AnyText, nullable=False),
    Column("call_id", AnyText),
    Column("message_id", Uuid16),
    Column("position", Int64, nullable=False),
    Column("policy", Sha256, nullable=False),
    Column("environment", Sha256),
    Column("title", AnyText),
    Column("started_at", Moment, nullable=False),
    Column("journal_key", Int64, nullable=False),
    Column("start_entry", Int64, nullable=False),
    Column("owner", Text()),
    Column("is_late", Boolean(), nullable=False),
    Column("finished_at", Moment),
    Column("duration_ms", Int64),
    Column("error_kind", AnyText),
    Column("exit_status", Int64),
    Column("signal", Int64),
    Column("timed_out", Boolean()),
    Column("output_size", Int64),
    Column("lost_size", Int64),
    Column("truncated", Boolean()),
    Column("end_journal_key", Int64),
    Column("end_entry", Int64),
    UniqueConstraint("session_key", "seq"),
    CheckConstraint(f"state IN {STATES}", name="state"),
    CheckConstraint("(state = 'started') = (finished_at IS NULL)", name="finished"),
    # The order of a page. With the session, a filter by agent skips rows without reading them.
    Index(None, "started_at", "key", "session_key"),
    Index(None, "tool_name", "started_at"),
    Index(None, "family", "started_at"),
    _partial("state", "started_at", where="state <> 'success'"),
    _partial("error_kind", "started_at", where="error_kind IS NOT NULL"),
    _partial("exit_status", "started_at", where="exit_status <> 0"),
    _partial("output_size", "started_at", where=f"output_size >= {LARGE_BYTES}"),
    # Providers make call ids longer than a b-tree page of PostgreSQL can hold.
    _partial("call_id", where="call_id IS NOT NULL", using="hash"),
)
"""The hot table: one row for each execution of a tool call.

The columns down to `is_late` are written at the start and never change. The others are written
once, when `state` leaves `started`; another journal than that of the start may have the end
(`end_journal_key`). `is_late` says that the session was closed before.
"""

surfaces = Table(
    "surfaces",
    metadata,
    Column("invocation_key", Int64, primary_key=True, autoincrement=False),
    Column("arguments", Text()),
    Column("output", Text()),
    Column("canonical", Text()),
    Column("receipt", Text()),
    Column("renderer", AnyText),
    Column("renderer_version", Int64),
    Column("shown", Sha256),
    Column("is_exact", Boolean(), nullable=False),
)
"""What the model asked for, and the three surfaces of what came of it, as texts.

`output` is the document of the complete output, with numbers for its streams, and `canonical` has
references for long texts that stand in the receipt; see `references`. Where `is_exact` is false, a
text holds what no database can store, a NUL or a lone surrogate: the column
then has a readable substitute, and the exact bytes are a body by the digest that the ledger entry
names.

Where the fact does not say what was shown, the ingester makes it, and `shown` is the digest of what
a fact would say: canonical result, receipt, renderer, omissions and artifacts (`made_shown`). Where
`is_exact` is false, that is a body.
"""

streams = Table(
    "streams",
    metadata,
    Column("invocation_key", Int64, primary_key=True, autoincrement=False),
    Column("n", SmallInteger().with_variant(Integer(), "sqlite"), primary_key=True),
    Column("role", AnyText, nullable=False),
    Column("digest", Sha256, nullable=False),
    Column("size", Int64, nullable=False),
    Column("line_count", Int64, nullable=False),
    Column("produced_size", Int64, nullable=False),
    Column("produced_line_count", Int64, nullable=False),
    Column("loss_reason", AnyText),
    Column("receipt_offset", Int64),
    # Retention must know who refers to a body or an artifact before it removes one.
    Index(None, "digest"),
    **_CLUSTERED,
)
"""The streams of a complete output.

The bytes are `size` bytes of the receipt from byte `receipt_offset` on, else the body of that
digest, else the artifact of that digest, else they wait in a spool (`pending_artifacts`).
"""

invocation_artifacts = Table(
    "invocation_artifacts",
    metadata,
    Column("invocation_key", Int64, primary_key=True, autoincrement=False),
    Column("n", SmallInteger().with_variant(Integer(), "sqlite"), primary_key=True),
    Column("role", AnyText, nullable=False),
    Column("digest", Sha256, nullable=False),
    Index(None, "digest"),
    **_CLUSTERED,
)
"""Which artifact stands at `result.artifacts[n]` of a canonical result, and what it is for."""

omissions = Table(
    "omissions",
    metadata,
    Column("invocation_key", Int64, primary_key=True, autoincrement=False),
    Column("n", SmallInteger().with_variant(Integer(), "sqlite"), primary_key=True),
    Column("stage", Text(), nullable=False),
    Column("field", AnyText, nullable=False),
    Column("unit", Text(), nullable=False),
    Column("before_count", Int64, nullable=False),
    Column("after_count", Int64, nullable=False),
    Column("reason", AnyText, nullable=False),
    CheckConstraint("after_count < before_count", name="counts"),
    **_CLUSTERED,
)
"""What one stage left out of one field."""

structured_outputs = Table(
    "structured_outputs",
    metadata,
    Column("invocation_key", Int64, primary_key=True, autoincrement=False),
    Column("schema", Sha256, nullable=False),
    Column("attempt", Int64, nullable=False),
    Column("valid", Boolean(), nullable=False),
    Column("document", AnyText, nullable=False),
)
"""One attempt of an agent to submit its structured result."""

rejected_facts = Table(
    "rejected_facts",
    metadata,
    _key(),
    Column("journal_key", Int64, nullable=False),
    Column("n", Int64),
    Column("segment", Int64, nullable=False),
    Column("segment_offset", Int64, nullable=False),
    Column("subject_id", Uuid16),
    Column("reason", AnyText, nullable=False),
    Column("data", LargeBinary(), nullable=False),
    Column("rejected_at", Moment, nullable=False),
    UniqueConstraint("journal_key", "segment", "segment_offset"),
    Index(None, "journal_key", "n"),
)
"""Facts that could not be applied, and damaged places of journals, with their bytes.

`n` is the ledger entry of the fact; NULL for damage, which has none.
"""

tombstones = Table(
    "tombstones",
    metadata,
    _key(),
    Column("kind", Text(), nullable=False),
    Column("digest", Sha256, nullable=False, index=True),
    Column("size", Int64, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("rule", AnyText, nullable=False),
    Column("actor", AnyText, nullable=False),
    Column("removed_at", Moment, nullable=False),
    CheckConstraint("kind IN ('body', 'artifact')", name="kind"),
)
"""What was removed, by whom, when, why, and by which rule."""

EVIDENCE: Final = (
    store_info,
    ledger_entries,
    bodies,
    artifacts,
    sessions,
    messages,
    tools,
    tool_offers,
    agent_legs,
    agent_outcomes,
    invocations,
    surfaces,
    streams,
    invocation_artifacts,
    omissions,
    structured_outputs,
    rejected_facts,
    tombstones,
)
"""Tables whose rows are never deleted, and updated by the rules of their triggers alone."""
