CREATE TABLE agent_legs (
	message_key INTEGER NOT NULL,
	session_key INTEGER NOT NULL,
	run_id BLOB NOT NULL,
	position INTEGER NOT NULL,
	tier TEXT NOT NULL,
	model TEXT NOT NULL,
	wire_format TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	agent BLOB NOT NULL,
	agent_version TEXT,
	schema BLOB,
	started_at INTEGER NOT NULL,
	CONSTRAINT pk_agent_legs PRIMARY KEY (message_key)
);

CREATE INDEX ix_agent_legs_agent_id_started_at ON agent_legs (agent_id, started_at);

CREATE INDEX ix_agent_legs_session_key ON agent_legs (session_key);

CREATE INDEX ix_agent_legs_started_at ON agent_legs (started_at);

CREATE TABLE agent_outcomes (
	message_key INTEGER NOT NULL,
	session_key INTEGER NOT NULL,
	outcome TEXT NOT NULL,
	escalated_to TEXT,
	attempt_count INTEGER NOT NULL,
	duration_ms INTEGER NOT NULL,
	CONSTRAINT pk_agent_outcomes PRIMARY KEY (message_key)
);

CREATE INDEX ix_agent_outcomes_session_key ON agent_outcomes (session_key);

CREATE TABLE artifacts (
	"key" INTEGER NOT NULL,
	digest BLOB NOT NULL,
	size INTEGER NOT NULL,
	stored_size INTEGER NOT NULL,
	line_count INTEGER NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_artifacts PRIMARY KEY ("key"),
	CONSTRAINT uq_artifacts_digest UNIQUE (digest)
);

CREATE TABLE bodies (
	"key" INTEGER NOT NULL,
	digest BLOB NOT NULL,
	size INTEGER NOT NULL,
	encoding TEXT NOT NULL,
	data BLOB,
	CONSTRAINT pk_bodies PRIMARY KEY ("key"),
	CONSTRAINT ck_bodies_encoding CHECK (encoding IN ('raw', 'zstd')),
	CONSTRAINT uq_bodies_digest UNIQUE (digest)
);

CREATE TABLE invocation_artifacts (
	invocation_key INTEGER NOT NULL,
	n INTEGER NOT NULL,
	role TEXT NOT NULL,
	digest BLOB NOT NULL,
	CONSTRAINT pk_invocation_artifacts PRIMARY KEY (invocation_key, n)
)
 WITHOUT ROWID;

CREATE INDEX ix_invocation_artifacts_digest ON invocation_artifacts (digest);

CREATE TABLE invocations (
	"key" INTEGER NOT NULL,
	id BLOB NOT NULL,
	session_key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	state TEXT NOT NULL,
	tool_name TEXT NOT NULL,
	family TEXT NOT NULL,
	call_id TEXT,
	message_id BLOB,
	position INTEGER NOT NULL,
	policy BLOB NOT NULL,
	environment BLOB,
	title TEXT,
	started_at INTEGER NOT NULL,
	journal_key INTEGER NOT NULL,
	start_entry INTEGER NOT NULL,
	owner TEXT,
	is_late BOOLEAN NOT NULL,
	finished_at INTEGER,
	duration_ms INTEGER,
	error_kind TEXT,
	exit_status INTEGER,
	signal INTEGER,
	timed_out BOOLEAN,
	output_size INTEGER,
	lost_size INTEGER,
	truncated BOOLEAN,
	end_journal_key INTEGER,
	end_entry INTEGER,
	outcome TEXT GENERATED ALWAYS AS (CASE
		WHEN state = 'started' AND owner IS NULL THEN 'unfinished'
		WHEN state = 'started' THEN 'running'
		WHEN timed_out IS TRUE OR error_kind = 'tool_timed_out' THEN 'timeout'
		WHEN state <> 'success' THEN state
		WHEN signal > 0 THEN 'signal'
		WHEN exit_status <> 0 THEN 'exit'
		ELSE 'ok' END) STORED,
	CONSTRAINT pk_invocations PRIMARY KEY ("key"),
	CONSTRAINT uq_invocations_session_key_seq UNIQUE (session_key, seq),
	CONSTRAINT ck_invocations_state CHECK (state IN ('started', 'success', 'error', 'interrupted', 'denied', 'cancelled')),
	CONSTRAINT ck_invocations_finished CHECK ((state = 'started') = (finished_at IS NULL)),
	CONSTRAINT uq_invocations_id UNIQUE (id)
);

CREATE INDEX ix_invocations_call_id ON invocations (call_id) WHERE call_id IS NOT NULL;

CREATE INDEX ix_invocations_error_kind_started_at ON invocations (error_kind, started_at) WHERE error_kind IS NOT NULL;

CREATE INDEX ix_invocations_exit_status_started_at ON invocations (exit_status, started_at) WHERE exit_status <> 0;

CREATE INDEX ix_invocations_family_started_at ON invocations (family, started_at);

CREATE INDEX ix_invocations_outcome_started_at ON invocations (outcome, started_at) WHERE outcome <> 'ok';

CREATE INDEX ix_invocations_output_size_started_at ON invocations (output_size, started_at) WHERE output_size >= 32768;

CREATE INDEX ix_invocations_started_at_key_session_key ON invocations (started_at, "key", session_key);

CREATE INDEX ix_invocations_state_started_at ON invocations (state, started_at) WHERE state <> 'success';

CREATE INDEX ix_invocations_tool_name_started_at ON invocations (tool_name, started_at);

CREATE TABLE journals (
	"key" INTEGER NOT NULL,
	id BLOB NOT NULL,
	host TEXT NOT NULL,
	spool TEXT NOT NULL,
	branch_of BLOB,
	entry_count INTEGER NOT NULL,
	next_index INTEGER NOT NULL,
	head BLOB,
	segment INTEGER NOT NULL,
	segment_offset INTEGER NOT NULL,
	frame_offset INTEGER,
	created_at INTEGER NOT NULL,
	ingested_at INTEGER NOT NULL,
	CONSTRAINT pk_journals PRIMARY KEY ("key"),
	CONSTRAINT uq_journals_id UNIQUE (id)
);

CREATE TABLE ledger_entries (
	journal_key INTEGER NOT NULL,
	n INTEGER NOT NULL,
	kind TEXT NOT NULL,
	subject_id BLOB,
	fact BLOB NOT NULL,
	hash BLOB NOT NULL,
	CONSTRAINT pk_ledger_entries PRIMARY KEY (journal_key, n)
)
 WITHOUT ROWID;

CREATE TABLE messages (
	"key" INTEGER NOT NULL,
	id BLOB NOT NULL,
	session_key INTEGER NOT NULL,
	seq INTEGER NOT NULL,
	role TEXT NOT NULL,
	text BLOB NOT NULL,
	document BLOB,
	payload BLOB,
	wire_format TEXT,
	created_at INTEGER NOT NULL,
	journal_key INTEGER NOT NULL,
	entry INTEGER NOT NULL,
	CONSTRAINT pk_messages PRIMARY KEY ("key"),
	CONSTRAINT uq_messages_session_key_seq UNIQUE (session_key, seq),
	CONSTRAINT uq_messages_id UNIQUE (id)
);

CREATE TABLE omissions (
	invocation_key INTEGER NOT NULL,
	n INTEGER NOT NULL,
	stage TEXT NOT NULL,
	field TEXT NOT NULL,
	unit TEXT NOT NULL,
	before_count INTEGER NOT NULL,
	after_count INTEGER NOT NULL,
	reason TEXT NOT NULL,
	CONSTRAINT pk_omissions PRIMARY KEY (invocation_key, n),
	CONSTRAINT ck_omissions_counts CHECK (after_count < before_count)
)
 WITHOUT ROWID;

CREATE TABLE open_answers (
	message_id BLOB NOT NULL,
	journal_key INTEGER NOT NULL,
	entry INTEGER NOT NULL,
	CONSTRAINT pk_open_answers PRIMARY KEY (message_id)
);

CREATE TABLE pending_artifacts (
	digest BLOB NOT NULL,
	journal_key INTEGER NOT NULL,
	spooled TEXT,
	role TEXT NOT NULL,
	size INTEGER NOT NULL,
	line_count INTEGER NOT NULL,
	reason TEXT NOT NULL,
	noticed_at INTEGER NOT NULL,
	CONSTRAINT pk_pending_artifacts PRIMARY KEY (digest, journal_key)
);

CREATE TABLE rejected_facts (
	"key" INTEGER NOT NULL,
	journal_key INTEGER NOT NULL,
	n INTEGER,
	segment INTEGER NOT NULL,
	segment_offset INTEGER NOT NULL,
	subject_id BLOB,
	reason TEXT NOT NULL,
	data BLOB NOT NULL,
	rejected_at INTEGER NOT NULL,
	CONSTRAINT pk_rejected_facts PRIMARY KEY ("key"),
	CONSTRAINT uq_rejected_facts_journal_key_segment_segment_offset UNIQUE (journal_key, segment, segment_offset)
);

CREATE INDEX ix_rejected_facts_journal_key_n ON rejected_facts (journal_key, n);

CREATE TABLE sessions (
	"key" INTEGER NOT NULL,
	id BLOB NOT NULL,
	name TEXT,
	parent_id BLOB,
	title TEXT,
	agent TEXT,
	environment BLOB,
	opened_at INTEGER NOT NULL,
	closed_at INTEGER,
	close_reason TEXT,
	journal_key INTEGER NOT NULL,
	open_journal_key INTEGER,
	entry INTEGER,
	close_journal_key INTEGER,
	close_entry INTEGER,
	CONSTRAINT pk_sessions PRIMARY KEY ("key"),
	CONSTRAINT uq_sessions_id UNIQUE (id)
);

CREATE INDEX ix_sessions_agent ON sessions (agent) WHERE agent IS NOT NULL;

CREATE INDEX ix_sessions_name ON sessions (name) WHERE name IS NOT NULL;

CREATE INDEX ix_sessions_opened_at ON sessions (opened_at);

CREATE INDEX ix_sessions_parent_id ON sessions (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE store_info (
	"key" INTEGER NOT NULL,
	id BLOB NOT NULL,
	format INTEGER NOT NULL,
	artifact_root TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_store_info PRIMARY KEY ("key"),
	CONSTRAINT ck_store_info_single CHECK (key = 1)
);

CREATE TABLE streams (
	invocation_key INTEGER NOT NULL,
	n INTEGER NOT NULL,
	role TEXT NOT NULL,
	digest BLOB NOT NULL,
	size INTEGER NOT NULL,
	line_count INTEGER NOT NULL,
	produced_size INTEGER NOT NULL,
	produced_line_count INTEGER NOT NULL,
	loss_reason TEXT,
	receipt_offset INTEGER,
	CONSTRAINT pk_streams PRIMARY KEY (invocation_key, n)
)
 WITHOUT ROWID;

CREATE INDEX ix_streams_digest ON streams (digest);

CREATE INDEX ix_streams_loss_reason ON streams (loss_reason) WHERE loss_reason IS NOT NULL;

CREATE TABLE surfaces (
	invocation_key INTEGER NOT NULL,
	arguments TEXT,
	output TEXT,
	canonical TEXT,
	receipt TEXT,
	renderer TEXT,
	renderer_version INTEGER,
	shown BLOB,
	cut_size INTEGER,
	receipt_journal_key INTEGER,
	receipt_entry INTEGER,
	is_exact BOOLEAN NOT NULL,
	CONSTRAINT pk_surfaces PRIMARY KEY (invocation_key)
);

CREATE INDEX ix_surfaces_cut_size ON surfaces (cut_size) WHERE cut_size IS NOT NULL;

CREATE TABLE tombstones (
	"key" INTEGER NOT NULL,
	kind TEXT NOT NULL,
	digest BLOB NOT NULL,
	size INTEGER NOT NULL,
	reason TEXT NOT NULL,
	rule TEXT NOT NULL,
	actor TEXT NOT NULL,
	removed_at INTEGER NOT NULL,
	CONSTRAINT pk_tombstones PRIMARY KEY ("key"),
	CONSTRAINT ck_tombstones_kind CHECK (kind IN ('body', 'artifact'))
);

CREATE INDEX ix_tombstones_digest ON tombstones (digest);

CREATE TABLE tool_offers (
	message_key INTEGER NOT NULL,
	position INTEGER NOT NULL,
	tool BLOB NOT NULL,
	CONSTRAINT pk_tool_offers PRIMARY KEY (message_key, position)
)
 WITHOUT ROWID;

CREATE INDEX ix_tool_offers_tool ON tool_offers (tool);

CREATE TABLE tools (
	"key" INTEGER NOT NULL,
	digest BLOB NOT NULL,
	name TEXT NOT NULL,
	created_at INTEGER NOT NULL,
	CONSTRAINT pk_tools PRIMARY KEY ("key"),
	CONSTRAINT uq_tools_digest UNIQUE (digest)
);

CREATE INDEX ix_tools_name ON tools (name);

CREATE TRIGGER store_info_no_delete BEFORE DELETE ON store_info BEGIN SELECT RAISE(ABORT, 'store_info is append-only'); END;

CREATE TRIGGER store_info_no_update BEFORE UPDATE ON store_info WHEN NEW.key IS NOT OLD.key OR NEW.id IS NOT OLD.id OR NEW.format IS NOT OLD.format OR NEW.created_at IS NOT OLD.created_at BEGIN SELECT RAISE(ABORT, 'store_info is append-only'); END;

CREATE TRIGGER ledger_entries_no_delete BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'ledger_entries is append-only'); END;

CREATE TRIGGER ledger_entries_no_update BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'ledger_entries is append-only'); END;

CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies BEGIN SELECT RAISE(ABORT, 'bodies is append-only'); END;

CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies WHEN NEW.key IS NOT OLD.key OR NEW.digest IS NOT OLD.digest OR NEW.size IS NOT OLD.size OR (OLD.data IS NOT NULL AND NEW.data IS NOT NULL) BEGIN SELECT RAISE(ABORT, 'bodies is append-only'); END;

CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON artifacts BEGIN SELECT RAISE(ABORT, 'artifacts is append-only'); END;

CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON artifacts BEGIN SELECT RAISE(ABORT, 'artifacts is append-only'); END;

CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'sessions is append-only'); END;

CREATE TRIGGER sessions_no_update BEFORE UPDATE ON sessions WHEN NEW.id IS NOT OLD.id OR NEW.opened_at IS NOT OLD.opened_at OR NEW.journal_key IS NOT OLD.journal_key OR (OLD.closed_at IS NOT NULL AND (NEW.closed_at IS NOT OLD.closed_at OR NEW.close_reason IS NOT OLD.close_reason OR NEW.close_journal_key IS NOT OLD.close_journal_key OR NEW.close_entry IS NOT OLD.close_entry)) OR (OLD.entry IS NOT NULL AND (NEW.name IS NOT OLD.name OR NEW.parent_id IS NOT OLD.parent_id OR NEW.title IS NOT OLD.title OR NEW.agent IS NOT OLD.agent OR NEW.environment IS NOT OLD.environment OR NEW.open_journal_key IS NOT OLD.open_journal_key OR NEW.entry IS NOT OLD.entry)) BEGIN SELECT RAISE(ABORT, 'sessions is append-only'); END;

CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;

CREATE TRIGGER messages_no_update BEFORE UPDATE ON messages BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;

CREATE TRIGGER tools_no_delete BEFORE DELETE ON tools BEGIN SELECT RAISE(ABORT, 'tools is append-only'); END;

CREATE TRIGGER tools_no_update BEFORE UPDATE ON tools BEGIN SELECT RAISE(ABORT, 'tools is append-only'); END;

CREATE TRIGGER tool_offers_no_delete BEFORE DELETE ON tool_offers BEGIN SELECT RAISE(ABORT, 'tool_offers is append-only'); END;

CREATE TRIGGER tool_offers_no_update BEFORE UPDATE ON tool_offers BEGIN SELECT RAISE(ABORT, 'tool_offers is append-only'); END;

CREATE TRIGGER agent_legs_no_delete BEFORE DELETE ON agent_legs BEGIN SELECT RAISE(ABORT, 'agent_legs is append-only'); END;

CREATE TRIGGER agent_legs_no_update BEFORE UPDATE ON agent_legs BEGIN SELECT RAISE(ABORT, 'agent_legs is append-only'); END;

CREATE TRIGGER agent_outcomes_no_delete BEFORE DELETE ON agent_outcomes BEGIN SELECT RAISE(ABORT, 'agent_outcomes is append-only'); END;

CREATE TRIGGER agent_outcomes_no_update BEFORE UPDATE ON agent_outcomes BEGIN SELECT RAISE(ABORT, 'agent_outcomes is append-only'); END;

CREATE TRIGGER invocations_no_delete BEFORE DELETE ON invocations BEGIN SELECT RAISE(ABORT, 'invocations is append-only'); END;

CREATE TRIGGER invocations_no_update BEFORE UPDATE ON invocations WHEN OLD.state <> 'started' OR NEW.key IS NOT OLD.key OR NEW.id IS NOT OLD.id OR NEW.session_key IS NOT OLD.session_key OR NEW.seq IS NOT OLD.seq OR NEW.tool_name IS NOT OLD.tool_name OR NEW.family IS NOT OLD.family OR NEW.position IS NOT OLD.position OR NEW.policy IS NOT OLD.policy OR NEW.started_at IS NOT OLD.started_at OR NEW.journal_key IS NOT OLD.journal_key OR NEW.start_entry IS NOT OLD.start_entry OR NEW.is_late IS NOT OLD.is_late OR NEW.call_id IS NOT OLD.call_id OR NEW.message_id IS NOT OLD.message_id OR NEW.environment IS NOT OLD.environment OR NEW.owner IS NOT OLD.owner OR NEW.title IS NOT OLD.title BEGIN SELECT RAISE(ABORT, 'invocations is append-only'); END;

CREATE TRIGGER surfaces_no_delete BEFORE DELETE ON surfaces BEGIN SELECT RAISE(ABORT, 'surfaces is append-only'); END;

CREATE TRIGGER surfaces_no_update BEFORE UPDATE ON surfaces WHEN (OLD.arguments IS NOT NULL AND NEW.arguments IS NOT NULL AND NEW.arguments IS NOT OLD.arguments) OR (OLD.output IS NOT NULL AND NEW.output IS NOT NULL AND NEW.output IS NOT OLD.output) OR (OLD.canonical IS NOT NULL AND NEW.canonical IS NOT NULL AND NEW.canonical IS NOT OLD.canonical) OR (OLD.receipt IS NOT NULL AND NEW.receipt IS NOT NULL AND NEW.receipt IS NOT OLD.receipt) OR (OLD.renderer IS NOT NULL AND NEW.renderer IS NOT NULL AND NEW.renderer IS NOT OLD.renderer) OR (OLD.renderer_version IS NOT NULL AND NEW.renderer_version IS NOT NULL AND NEW.renderer_version IS NOT OLD.renderer_version) OR (OLD.shown IS NOT NULL AND NEW.shown IS NOT NULL AND NEW.shown IS NOT OLD.shown) OR (OLD.cut_size IS NOT NULL AND NEW.cut_size IS NOT OLD.cut_size) OR (OLD.receipt_entry IS NOT NULL AND (NEW.receipt_entry IS NOT OLD.receipt_entry OR NEW.receipt_journal_key IS NOT OLD.receipt_journal_key)) OR NEW.invocation_key IS NOT OLD.invocation_key BEGIN SELECT RAISE(ABORT, 'surfaces is append-only'); END;

CREATE TRIGGER streams_no_delete BEFORE DELETE ON streams BEGIN SELECT RAISE(ABORT, 'streams is append-only'); END;

CREATE TRIGGER streams_no_update BEFORE UPDATE ON streams BEGIN SELECT RAISE(ABORT, 'streams is append-only'); END;

CREATE TRIGGER invocation_artifacts_no_delete BEFORE DELETE ON invocation_artifacts BEGIN SELECT RAISE(ABORT, 'invocation_artifacts is append-only'); END;

CREATE TRIGGER invocation_artifacts_no_update BEFORE UPDATE ON invocation_artifacts BEGIN SELECT RAISE(ABORT, 'invocation_artifacts is append-only'); END;

CREATE TRIGGER omissions_no_delete BEFORE DELETE ON omissions BEGIN SELECT RAISE(ABORT, 'omissions is append-only'); END;

CREATE TRIGGER omissions_no_update BEFORE UPDATE ON omissions BEGIN SELECT RAISE(ABORT, 'omissions is append-only'); END;

CREATE TRIGGER rejected_facts_no_delete BEFORE DELETE ON rejected_facts BEGIN SELECT RAISE(ABORT, 'rejected_facts is append-only'); END;

CREATE TRIGGER rejected_facts_no_update BEFORE UPDATE ON rejected_facts BEGIN SELECT RAISE(ABORT, 'rejected_facts is append-only'); END;

CREATE TRIGGER tombstones_no_delete BEFORE DELETE ON tombstones BEGIN SELECT RAISE(ABORT, 'tombstones is append-only'); END;

CREATE TRIGGER tombstones_no_update BEFORE UPDATE ON tombstones BEGIN SELECT RAISE(ABORT, 'tombstones is append-only'); END;

CREATE TRIGGER bodies_no_erasure BEFORE UPDATE ON bodies WHEN OLD.data IS NOT NULL AND NEW.data IS NULL AND NOT EXISTS (SELECT 1 FROM tombstones WHERE kind = 'body' AND digest = OLD.digest) BEGIN SELECT RAISE(ABORT, 'bodies is append-only without a tombstone'); END;

CREATE VIEW v_invocations AS SELECT
    CASE WHEN i.id IS NOT NULL THEN lower(substr(hex(i.id), 1, 8) || '-' || substr(hex(i.id), 9, 4) || '-' || substr(hex(i.id), 13, 4) || '-' || substr(hex(i.id), 17, 4) || '-' || substr(hex(i.id), 21)) END AS id,
    CASE WHEN s.id IS NOT NULL THEN lower(substr(hex(s.id), 1, 8) || '-' || substr(hex(s.id), 9, 4) || '-' || substr(hex(s.id), 13, 4) || '-' || substr(hex(s.id), 17, 4) || '-' || substr(hex(s.id), 21)) END AS session_id,
    s.name AS session_name,
    s.agent AS agent,
    i.seq AS seq,
    i.state AS state,
    CASE i.state WHEN 'success' THEN 'success' WHEN 'started' THEN NULL ELSE 'error' END AS status,
    i.outcome AS outcome,
    i.tool_name AS tool_name,
    i.family AS family,
    i.call_id AS call_id,
    CASE WHEN i.message_id IS NOT NULL THEN lower(substr(hex(i.message_id), 1, 8) || '-' || substr(hex(i.message_id), 9, 4) || '-' || substr(hex(i.message_id), 13, 4) || '-' || substr(hex(i.message_id), 17, 4) || '-' || substr(hex(i.message_id), 21)) END AS message_id,
    i.position AS position,
    strftime('%Y-%m-%dT%H:%M:%S', (i.started_at - ((i.started_at % 1000000 + 1000000) % 1000000)) / 1000000, 'unixepoch') || printf('.%06dZ', ((i.started_at % 1000000 + 1000000) % 1000000)) AS started_at,
    strftime('%Y-%m-%dT%H:%M:%S', (i.finished_at - ((i.finished_at % 1000000 + 1000000) % 1000000)) / 1000000, 'unixepoch') || printf('.%06dZ', ((i.finished_at % 1000000 + 1000000) % 1000000)) AS finished_at,
    i.duration_ms AS duration_ms,
    i.error_kind AS error_kind,
    i.exit_status AS exit_status,
    i.signal AS signal,
    i.timed_out AS timed_out,
    i.output_size AS output_size,
    i.lost_size AS lost_size,
    t.cut_size AS cut_size,
    i.truncated AS truncated,
    i.is_late AS is_late,
    CASE WHEN i.policy IS NOT NULL THEN 'sha256:' || lower(hex(i.policy)) END AS policy,
    i.title AS title,
    t.arguments AS arguments,
    t.output AS output,
    t.canonical AS canonical,
    t.receipt AS receipt,
    t.renderer AS renderer,
    t.renderer_version AS renderer_version,
    t.is_exact AS is_exact
FROM invocations AS i
LEFT JOIN sessions AS s ON s.key = i.session_key
LEFT JOIN surfaces AS t ON t.invocation_key = i.key;

CREATE VIEW v_sessions AS SELECT
    CASE WHEN s.id IS NOT NULL THEN lower(substr(hex(s.id), 1, 8) || '-' || substr(hex(s.id), 9, 4) || '-' || substr(hex(s.id), 13, 4) || '-' || substr(hex(s.id), 17, 4) || '-' || substr(hex(s.id), 21)) END AS id,
    s.name AS name,
    s.title AS title,
    s.agent AS agent,
    CASE WHEN s.parent_id IS NOT NULL THEN lower(substr(hex(s.parent_id), 1, 8) || '-' || substr(hex(s.parent_id), 9, 4) || '-' || substr(hex(s.parent_id), 13, 4) || '-' || substr(hex(s.parent_id), 17, 4) || '-' || substr(hex(s.parent_id), 21)) END AS parent_id,
    strftime('%Y-%m-%dT%H:%M:%S', (s.opened_at - ((s.opened_at % 1000000 + 1000000) % 1000000)) / 1000000, 'unixepoch') || printf('.%06dZ', ((s.opened_at % 1000000 + 1000000) % 1000000)) AS opened_at,
    strftime('%Y-%m-%dT%H:%M:%S', (s.closed_at - ((s.closed_at % 1000000 + 1000000) % 1000000)) / 1000000, 'unixepoch') || printf('.%06dZ', ((s.closed_at % 1000000 + 1000000) % 1000000)) AS closed_at,
    s.close_reason AS close_reason,
    CASE WHEN s.environment IS NOT NULL THEN 'sha256:' || lower(hex(s.environment)) END AS environment,
    (SELECT count(*) FROM invocations AS i WHERE i.session_key = s.key) AS invocation_count,
    (SELECT count(*) FROM invocations AS i WHERE i.session_key = s.key
        AND i.state = 'started') AS open_count
FROM sessions AS s;

CREATE VIEW v_artifacts AS SELECT
    CASE WHEN a.digest IS NOT NULL THEN 'sha256:' || lower(hex(a.digest)) END AS digest,
    'sha256/' || substr(lower(hex(a.digest)), 1, 2) || '/' || lower(hex(a.digest)) || '.zst' AS path,
    a.size AS size,
    a.stored_size AS stored_size,
    a.line_count AS line_count,
    strftime('%Y-%m-%dT%H:%M:%S', (a.created_at - ((a.created_at % 1000000 + 1000000) % 1000000)) / 1000000, 'unixepoch') || printf('.%06dZ', ((a.created_at % 1000000 + 1000000) % 1000000)) AS created_at,
    u.role AS role,
    CASE WHEN i.id IS NOT NULL THEN lower(substr(hex(i.id), 1, 8) || '-' || substr(hex(i.id), 9, 4) || '-' || substr(hex(i.id), 13, 4) || '-' || substr(hex(i.id), 17, 4) || '-' || substr(hex(i.id), 21)) END AS invocation_id,
    i.tool_name AS tool_name,
    CASE WHEN s.id IS NOT NULL THEN lower(substr(hex(s.id), 1, 8) || '-' || substr(hex(s.id), 9, 4) || '-' || substr(hex(s.id), 13, 4) || '-' || substr(hex(s.id), 17, 4) || '-' || substr(hex(s.id), 21)) END AS session_id,
    s.name AS session_name
FROM artifacts AS a
LEFT JOIN (
    SELECT invocation_key, digest, role FROM streams
    UNION SELECT invocation_key, digest, role FROM invocation_artifacts
) AS u ON u.digest = a.digest
LEFT JOIN invocations AS i ON i.key = u.invocation_key
LEFT JOIN sessions AS s ON s.key = i.session_key;

CREATE VIEW v_omissions AS SELECT
    CASE WHEN i.id IS NOT NULL THEN lower(substr(hex(i.id), 1, 8) || '-' || substr(hex(i.id), 9, 4) || '-' || substr(hex(i.id), 13, 4) || '-' || substr(hex(i.id), 17, 4) || '-' || substr(hex(i.id), 21)) END AS invocation_id,
    i.tool_name AS tool_name,
    CASE WHEN s.id IS NOT NULL THEN lower(substr(hex(s.id), 1, 8) || '-' || substr(hex(s.id), 9, 4) || '-' || substr(hex(s.id), 13, 4) || '-' || substr(hex(s.id), 17, 4) || '-' || substr(hex(s.id), 21)) END AS session_id,
    s.name AS session_name,
    strftime('%Y-%m-%dT%H:%M:%S', (i.started_at - ((i.started_at % 1000000 + 1000000) % 1000000)) / 1000000, 'unixepoch') || printf('.%06dZ', ((i.started_at % 1000000 + 1000000) % 1000000)) AS started_at,
    o.n AS n,
    o.stage AS stage,
    o.field AS field,
    o.unit AS unit,
    o.before_count AS before_count,
    o.after_count AS after_count,
    o.before_count - o.after_count AS omitted_count,
    o.reason AS reason
FROM omissions AS o
LEFT JOIN invocations AS i ON i.key = o.invocation_key
LEFT JOIN sessions AS s ON s.key = i.session_key;
