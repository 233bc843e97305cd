CREATE TABLE agent_legs (
	message_key BIGINT NOT NULL,
	session_key BIGINT NOT NULL,
	run_id UUID NOT NULL,
	position BIGINT NOT NULL,
	tier TEXT NOT NULL,
	model TEXT NOT NULL,
	wire_format TEXT NOT NULL,
	agent_id TEXT NOT NULL,
	agent BYTEA NOT NULL,
	agent_version TEXT,
	schema BYTEA,
	started_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_agent_legs PRIMARY KEY (message_key)
);

CREATE INDEX ix_agent_legs_agent_id_started_at ON agent_legs (agent_id, started_at);

CREATE INDEX ix_agent_legs_session_key ON agent_legs (session_key);

CREATE INDEX ix_agent_legs_started_at ON agent_legs (started_at);

CREATE TABLE agent_outcomes (
	message_key BIGINT NOT NULL,
	session_key BIGINT NOT NULL,
	outcome TEXT NOT NULL,
	escalated_to TEXT,
	attempt_count BIGINT NOT NULL,
	duration_ms BIGINT NOT NULL,
	CONSTRAINT pk_agent_outcomes PRIMARY KEY (message_key)
);

CREATE INDEX ix_agent_outcomes_session_key ON agent_outcomes (session_key);

CREATE TABLE artifacts (
	key BIGSERIAL NOT NULL,
	digest BYTEA NOT NULL,
	size BIGINT NOT NULL,
	stored_size BIGINT NOT NULL,
	line_count BIGINT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_artifacts PRIMARY KEY (key),
	CONSTRAINT uq_artifacts_digest UNIQUE (digest)
);

CREATE TABLE bodies (
	key BIGSERIAL NOT NULL,
	digest BYTEA NOT NULL,
	size BIGINT NOT NULL,
	encoding TEXT NOT NULL,
	data BYTEA,
	CONSTRAINT pk_bodies PRIMARY KEY (key),
	CONSTRAINT ck_bodies_encoding CHECK (encoding IN ('raw', 'zstd')),
	CONSTRAINT uq_bodies_digest UNIQUE (digest)
);

CREATE TABLE invocation_artifacts (
	invocation_key BIGINT NOT NULL,
	n SMALLINT NOT NULL,
	role TEXT NOT NULL,
	digest BYTEA NOT NULL,
	CONSTRAINT pk_invocation_artifacts PRIMARY KEY (invocation_key, n)
);

CREATE INDEX ix_invocation_artifacts_digest ON invocation_artifacts (digest);

CREATE TABLE invocations (
	key BIGSERIAL NOT NULL,
	id UUID NOT NULL,
	session_key BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	state TEXT NOT NULL,
	tool_name TEXT NOT NULL,
	family TEXT NOT NULL,
	call_id TEXT,
	message_id UUID,
	position BIGINT NOT NULL,
	policy BYTEA NOT NULL,
	environment BYTEA,
	title TEXT,
	started_at TIMESTAMP WITH TIME ZONE NOT NULL,
	journal_key BIGINT NOT NULL,
	start_entry BIGINT NOT NULL,
	owner TEXT,
	is_late BOOLEAN NOT NULL,
	finished_at TIMESTAMP WITH TIME ZONE,
	duration_ms BIGINT,
	error_kind TEXT,
	exit_status BIGINT,
	signal BIGINT,
	timed_out BOOLEAN,
	output_size BIGINT,
	lost_size BIGINT,
	truncated BOOLEAN,
	end_journal_key BIGINT,
	end_entry BIGINT,
	outcome TEXT GENERATED ALWAYS AS (CASE
		WHEN state = 'started' AND owner IS NULL THEN 'unfinished'
		WHEN state = 'started' THEN 'running'
		WHEN timed_out IS TRUE OR error_kind = 'tool_timed_out' THEN 'timeout'
		WHEN state <> 'success' THEN state
		WHEN signal > 0 THEN 'signal'
		WHEN exit_status <> 0 THEN 'exit'
		ELSE 'ok' END) STORED,
	CONSTRAINT pk_invocations PRIMARY KEY (key),
	CONSTRAINT uq_invocations_session_key_seq UNIQUE (session_key, seq),
	CONSTRAINT ck_invocations_state CHECK (state IN ('started', 'success', 'error', 'interrupted', 'denied', 'cancelled')),
	CONSTRAINT ck_invocations_finished CHECK ((state = 'started') = (finished_at IS NULL)),
	CONSTRAINT uq_invocations_id UNIQUE (id)
);

CREATE INDEX ix_invocations_call_id ON invocations USING hash (call_id) WHERE call_id IS NOT NULL;

CREATE INDEX ix_invocations_error_kind_started_at ON invocations USING btree (error_kind, started_at) WHERE error_kind IS NOT NULL;

CREATE INDEX ix_invocations_exit_status_started_at ON invocations USING btree (exit_status, started_at) WHERE exit_status <> 0;

CREATE INDEX ix_invocations_family_started_at ON invocations (family, started_at);

CREATE INDEX ix_invocations_outcome_started_at ON invocations USING btree (outcome, started_at) WHERE outcome <> 'ok';

CREATE INDEX ix_invocations_output_size_started_at ON invocations USING btree (output_size, started_at) WHERE output_size >= 32768;

CREATE INDEX ix_invocations_started_at_key_session_key ON invocations (started_at, key, session_key);

CREATE INDEX ix_invocations_state_started_at ON invocations USING btree (state, started_at) WHERE state <> 'success';

CREATE INDEX ix_invocations_tool_name_started_at ON invocations (tool_name, started_at);

CREATE TABLE journals (
	key BIGSERIAL NOT NULL,
	id UUID NOT NULL,
	host TEXT NOT NULL,
	spool TEXT NOT NULL,
	branch_of UUID,
	entry_count BIGINT NOT NULL,
	next_index BIGINT NOT NULL,
	head BYTEA,
	segment BIGINT NOT NULL,
	segment_offset BIGINT NOT NULL,
	frame_offset BIGINT,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	ingested_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_journals PRIMARY KEY (key),
	CONSTRAINT uq_journals_id UNIQUE (id)
);

CREATE TABLE ledger_entries (
	journal_key BIGINT NOT NULL,
	n BIGINT NOT NULL,
	kind TEXT NOT NULL,
	subject_id UUID,
	fact BYTEA NOT NULL,
	hash BYTEA NOT NULL,
	CONSTRAINT pk_ledger_entries PRIMARY KEY (journal_key, n)
);

CREATE TABLE messages (
	key BIGSERIAL NOT NULL,
	id UUID NOT NULL,
	session_key BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	role TEXT NOT NULL,
	text BYTEA NOT NULL,
	document BYTEA,
	payload BYTEA,
	wire_format TEXT,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	journal_key BIGINT NOT NULL,
	entry BIGINT NOT NULL,
	CONSTRAINT pk_messages PRIMARY KEY (key),
	CONSTRAINT uq_messages_session_key_seq UNIQUE (session_key, seq),
	CONSTRAINT uq_messages_id UNIQUE (id)
);

CREATE TABLE omissions (
	invocation_key BIGINT NOT NULL,
	n SMALLINT NOT NULL,
	stage TEXT NOT NULL,
	field TEXT NOT NULL,
	unit TEXT NOT NULL,
	before_count BIGINT NOT NULL,
	after_count BIGINT NOT NULL,
	reason TEXT NOT NULL,
	CONSTRAINT pk_omissions PRIMARY KEY (invocation_key, n),
	CONSTRAINT ck_omissions_counts CHECK (after_count < before_count)
);

CREATE TABLE open_answers (
	message_id UUID NOT NULL,
	journal_key BIGINT NOT NULL,
	entry BIGINT NOT NULL,
	CONSTRAINT pk_open_answers PRIMARY KEY (message_id)
);

CREATE TABLE pending_artifacts (
	digest BYTEA NOT NULL,
	journal_key BIGINT NOT NULL,
	spooled TEXT,
	role TEXT NOT NULL,
	size BIGINT NOT NULL,
	line_count BIGINT NOT NULL,
	reason TEXT NOT NULL,
	noticed_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_pending_artifacts PRIMARY KEY (digest, journal_key)
);

CREATE TABLE rejected_facts (
	key BIGSERIAL NOT NULL,
	journal_key BIGINT NOT NULL,
	n BIGINT,
	segment BIGINT NOT NULL,
	segment_offset BIGINT NOT NULL,
	subject_id UUID,
	reason TEXT NOT NULL,
	data BYTEA NOT NULL,
	rejected_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_rejected_facts PRIMARY KEY (key),
	CONSTRAINT uq_rejected_facts_journal_key_segment_segment_offset UNIQUE (journal_key, segment, segment_offset)
);

CREATE INDEX ix_rejected_facts_journal_key_n ON rejected_facts (journal_key, n);

CREATE TABLE sessions (
	key BIGSERIAL NOT NULL,
	id UUID NOT NULL,
	name TEXT,
	parent_id UUID,
	title TEXT,
	agent TEXT,
	environment BYTEA,
	opened_at TIMESTAMP WITH TIME ZONE NOT NULL,
	closed_at TIMESTAMP WITH TIME ZONE,
	close_reason TEXT,
	journal_key BIGINT NOT NULL,
	open_journal_key BIGINT,
	entry BIGINT,
	close_journal_key BIGINT,
	close_entry BIGINT,
	CONSTRAINT pk_sessions PRIMARY KEY (key),
	CONSTRAINT uq_sessions_id UNIQUE (id)
);

CREATE INDEX ix_sessions_agent ON sessions USING btree (agent) WHERE agent IS NOT NULL;

CREATE INDEX ix_sessions_name ON sessions USING btree (name) WHERE name IS NOT NULL;

CREATE INDEX ix_sessions_opened_at ON sessions (opened_at);

CREATE INDEX ix_sessions_parent_id ON sessions USING btree (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE store_info (
	key BIGINT NOT NULL,
	id UUID NOT NULL,
	format BIGINT NOT NULL,
	artifact_root TEXT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_store_info PRIMARY KEY (key),
	CONSTRAINT ck_store_info_single CHECK (key = 1)
);

CREATE TABLE streams (
	invocation_key BIGINT NOT NULL,
	n SMALLINT NOT NULL,
	role TEXT NOT NULL,
	digest BYTEA NOT NULL,
	size BIGINT NOT NULL,
	line_count BIGINT NOT NULL,
	produced_size BIGINT NOT NULL,
	produced_line_count BIGINT NOT NULL,
	loss_reason TEXT,
	receipt_offset BIGINT,
	CONSTRAINT pk_streams PRIMARY KEY (invocation_key, n)
);

CREATE INDEX ix_streams_digest ON streams (digest);

CREATE INDEX ix_streams_loss_reason ON streams USING btree (loss_reason) WHERE loss_reason IS NOT NULL;

CREATE TABLE surfaces (
	invocation_key BIGINT NOT NULL,
	arguments TEXT,
	output TEXT,
	canonical TEXT,
	receipt TEXT,
	renderer TEXT,
	renderer_version BIGINT,
	shown BYTEA,
	cut_size BIGINT,
	receipt_journal_key BIGINT,
	receipt_entry BIGINT,
	is_exact BOOLEAN NOT NULL,
	CONSTRAINT pk_surfaces PRIMARY KEY (invocation_key)
);

CREATE INDEX ix_surfaces_cut_size ON surfaces USING btree (cut_size) WHERE cut_size IS NOT NULL;

CREATE TABLE tombstones (
	key BIGSERIAL NOT NULL,
	kind TEXT NOT NULL,
	digest BYTEA NOT NULL,
	size BIGINT NOT NULL,
	reason TEXT NOT NULL,
	rule TEXT NOT NULL,
	actor TEXT NOT NULL,
	removed_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_tombstones PRIMARY KEY (key),
	CONSTRAINT ck_tombstones_kind CHECK (kind IN ('body', 'artifact'))
);

CREATE INDEX ix_tombstones_digest ON tombstones (digest);

CREATE TABLE tool_offers (
	message_key BIGINT NOT NULL,
	position BIGINT NOT NULL,
	tool BYTEA NOT NULL,
	CONSTRAINT pk_tool_offers PRIMARY KEY (message_key, position)
);

CREATE INDEX ix_tool_offers_tool ON tool_offers (tool);

CREATE TABLE tools (
	key BIGSERIAL NOT NULL,
	digest BYTEA NOT NULL,
	name TEXT NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT pk_tools PRIMARY KEY (key),
	CONSTRAINT uq_tools_digest UNIQUE (digest)
);

CREATE INDEX ix_tools_name ON tools (name);

CREATE FUNCTION tooltrail_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$;

CREATE TRIGGER store_info_no_delete BEFORE DELETE ON store_info FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER store_info_no_truncate BEFORE TRUNCATE ON store_info FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER store_info_no_update BEFORE UPDATE ON store_info FOR EACH ROW WHEN (NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.format IS DISTINCT FROM OLD.format OR NEW.created_at IS DISTINCT FROM OLD.created_at) EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_entries_no_delete BEFORE DELETE ON ledger_entries FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_entries_no_truncate BEFORE TRUNCATE ON ledger_entries FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_entries_no_update BEFORE UPDATE ON ledger_entries FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER bodies_no_truncate BEFORE TRUNCATE ON bodies FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies FOR EACH ROW WHEN (NEW.key IS DISTINCT FROM OLD.key OR NEW.digest IS DISTINCT FROM OLD.digest OR NEW.size IS DISTINCT FROM OLD.size OR (OLD.data IS NOT NULL AND NEW.data IS NOT NULL)) EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON artifacts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER artifacts_no_truncate BEFORE TRUNCATE ON artifacts FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON artifacts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER sessions_no_truncate BEFORE TRUNCATE ON sessions FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER sessions_no_update BEFORE UPDATE ON sessions FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id OR NEW.opened_at IS DISTINCT FROM OLD.opened_at OR NEW.journal_key IS DISTINCT FROM OLD.journal_key OR (OLD.closed_at IS NOT NULL AND (NEW.closed_at IS DISTINCT FROM OLD.closed_at OR NEW.close_reason IS DISTINCT FROM OLD.close_reason OR NEW.close_journal_key IS DISTINCT FROM OLD.close_journal_key OR NEW.close_entry IS DISTINCT FROM OLD.close_entry)) OR (OLD.entry IS NOT NULL AND (NEW.name IS DISTINCT FROM OLD.name OR NEW.parent_id IS DISTINCT FROM OLD.parent_id OR NEW.title IS DISTINCT FROM OLD.title OR NEW.agent IS DISTINCT FROM OLD.agent OR NEW.environment IS DISTINCT FROM OLD.environment OR NEW.open_journal_key IS DISTINCT FROM OLD.open_journal_key OR NEW.entry IS DISTINCT FROM OLD.entry))) EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER messages_no_truncate BEFORE TRUNCATE ON messages FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER messages_no_update BEFORE UPDATE ON messages FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tools_no_delete BEFORE DELETE ON tools FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tools_no_truncate BEFORE TRUNCATE ON tools FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tools_no_update BEFORE UPDATE ON tools FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tool_offers_no_delete BEFORE DELETE ON tool_offers FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tool_offers_no_truncate BEFORE TRUNCATE ON tool_offers FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tool_offers_no_update BEFORE UPDATE ON tool_offers FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_legs_no_delete BEFORE DELETE ON agent_legs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_legs_no_truncate BEFORE TRUNCATE ON agent_legs FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_legs_no_update BEFORE UPDATE ON agent_legs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_outcomes_no_delete BEFORE DELETE ON agent_outcomes FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_outcomes_no_truncate BEFORE TRUNCATE ON agent_outcomes FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_outcomes_no_update BEFORE UPDATE ON agent_outcomes FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocations_no_delete BEFORE DELETE ON invocations FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocations_no_truncate BEFORE TRUNCATE ON invocations FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocations_no_update BEFORE UPDATE ON invocations FOR EACH ROW WHEN (OLD.state <> 'started' OR NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.session_key IS DISTINCT FROM OLD.session_key OR NEW.seq IS DISTINCT FROM OLD.seq OR NEW.tool_name IS DISTINCT FROM OLD.tool_name OR NEW.family IS DISTINCT FROM OLD.family OR NEW.position IS DISTINCT FROM OLD.position OR NEW.policy IS DISTINCT FROM OLD.policy OR NEW.started_at IS DISTINCT FROM OLD.started_at OR NEW.journal_key IS DISTINCT FROM OLD.journal_key OR NEW.start_entry IS DISTINCT FROM OLD.start_entry OR NEW.is_late IS DISTINCT FROM OLD.is_late OR NEW.call_id IS DISTINCT FROM OLD.call_id OR NEW.message_id IS DISTINCT FROM OLD.message_id OR NEW.environment IS DISTINCT FROM OLD.environment OR NEW.owner IS DISTINCT FROM OLD.owner OR NEW.title IS DISTINCT FROM OLD.title) EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER surfaces_no_delete BEFORE DELETE ON surfaces FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER surfaces_no_truncate BEFORE TRUNCATE ON surfaces FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER surfaces_no_update BEFORE UPDATE ON surfaces FOR EACH ROW WHEN ((OLD.arguments IS NOT NULL AND NEW.arguments IS NOT NULL AND NEW.arguments IS DISTINCT FROM OLD.arguments) OR (OLD.output IS NOT NULL AND NEW.output IS NOT NULL AND NEW.output IS DISTINCT FROM OLD.output) OR (OLD.canonical IS NOT NULL AND NEW.canonical IS NOT NULL AND NEW.canonical IS DISTINCT FROM OLD.canonical) OR (OLD.receipt IS NOT NULL AND NEW.receipt IS NOT NULL AND NEW.receipt IS DISTINCT FROM OLD.receipt) OR (OLD.renderer IS NOT NULL AND NEW.renderer IS NOT NULL AND NEW.renderer IS DISTINCT FROM OLD.renderer) OR (OLD.renderer_version IS NOT NULL AND NEW.renderer_version IS NOT NULL AND NEW.renderer_version IS DISTINCT FROM OLD.renderer_version) OR (OLD.shown IS NOT NULL AND NEW.shown IS NOT NULL AND NEW.shown IS DISTINCT FROM OLD.shown) OR (OLD.cut_size IS NOT NULL AND NEW.cut_size IS DISTINCT FROM OLD.cut_size) OR (OLD.receipt_entry IS NOT NULL AND (NEW.receipt_entry IS DISTINCT FROM OLD.receipt_entry OR NEW.receipt_journal_key IS DISTINCT FROM OLD.receipt_journal_key)) OR NEW.invocation_key IS DISTINCT FROM OLD.invocation_key) EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER streams_no_delete BEFORE DELETE ON streams FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER streams_no_truncate BEFORE TRUNCATE ON streams FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER streams_no_update BEFORE UPDATE ON streams FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocation_artifacts_no_delete BEFORE DELETE ON invocation_artifacts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocation_artifacts_no_truncate BEFORE TRUNCATE ON invocation_artifacts FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocation_artifacts_no_update BEFORE UPDATE ON invocation_artifacts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER omissions_no_delete BEFORE DELETE ON omissions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER omissions_no_truncate BEFORE TRUNCATE ON omissions FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER omissions_no_update BEFORE UPDATE ON omissions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER rejected_facts_no_delete BEFORE DELETE ON rejected_facts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER rejected_facts_no_truncate BEFORE TRUNCATE ON rejected_facts FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER rejected_facts_no_update BEFORE UPDATE ON rejected_facts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tombstones_no_delete BEFORE DELETE ON tombstones FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tombstones_no_truncate BEFORE TRUNCATE ON tombstones FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tombstones_no_update BEFORE UPDATE ON tombstones FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE FUNCTION tooltrail_refuse_erasure() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.data IS NOT NULL AND NEW.data IS NULL AND NOT EXISTS (SELECT 1 FROM tombstones WHERE kind = 'body' AND digest = OLD.digest) THEN RAISE EXCEPTION 'bodies is append-only without a tombstone'; END IF; RETURN NEW; END $$;

CREATE TRIGGER bodies_no_erasure BEFORE UPDATE ON bodies FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse_erasure();

CREATE VIEW v_invocations AS SELECT
    CAST(i.id AS text) AS id,
    CAST(s.id AS text) AS session_id,
    s.name AS session_name,
    s.agent AS agent,
    i.seq AS seq,
    i.state AS state,
    CASE i.state WHEN 'success' THEN 'success' WHEN 'started' THEN NULL ELSE 'error' END AS status,
    i.outcome AS outcome,
    i.tool_name AS tool_name,
    i.family AS family,
    i.call_id AS call_id,
    CAST(i.message_id AS text) AS message_id,
    i.position AS position,
    to_char(i.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS started_at,
    to_char(i.finished_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS finished_at,
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
    'sha256:' || encode(i.policy, 'hex') AS policy,
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
    CAST(s.id AS text) AS id,
    s.name AS name,
    s.title AS title,
    s.agent AS agent,
    CAST(s.parent_id AS text) AS parent_id,
    to_char(s.opened_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS opened_at,
    to_char(s.closed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS closed_at,
    s.close_reason AS close_reason,
    'sha256:' || encode(s.environment, 'hex') AS environment,
    (SELECT count(*) FROM invocations AS i WHERE i.session_key = s.key) AS invocation_count,
    (SELECT count(*) FROM invocations AS i WHERE i.session_key = s.key
        AND i.state = 'started') AS open_count
FROM sessions AS s;

CREATE VIEW v_artifacts AS SELECT
    'sha256:' || encode(a.digest, 'hex') AS digest,
    'sha256/' || substr(encode(a.digest, 'hex'), 1, 2) || '/' || encode(a.digest, 'hex') || '.zst' AS path,
    a.size AS size,
    a.stored_size AS stored_size,
    a.line_count AS line_count,
    to_char(a.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS created_at,
    u.role AS role,
    CAST(i.id AS text) AS invocation_id,
    i.tool_name AS tool_name,
    CAST(s.id AS text) AS session_id,
    s.name AS session_name
FROM artifacts AS a
LEFT JOIN (
    SELECT invocation_key, digest, role FROM streams
    UNION SELECT invocation_key, digest, role FROM invocation_artifacts
) AS u ON u.digest = a.digest
LEFT JOIN invocations AS i ON i.key = u.invocation_key
LEFT JOIN sessions AS s ON s.key = i.session_key;

CREATE VIEW v_omissions AS SELECT
    CAST(i.id AS text) AS invocation_id,
    i.tool_name AS tool_name,
    CAST(s.id AS text) AS session_id,
    s.name AS session_name,
    to_char(i.started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS started_at,
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
