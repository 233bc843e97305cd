BEGIN;

CREATE TABLE tooltrail_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT tooltrail_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE policies (
    digest TEXT NOT NULL, 
    document TEXT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_policies PRIMARY KEY (digest)
);

CREATE TABLE tools (
    digest TEXT NOT NULL, 
    name TEXT NOT NULL, 
    family TEXT NOT NULL, 
    document TEXT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_tools PRIMARY KEY (digest)
);

CREATE INDEX ix_tools_name ON tools (name);

CREATE TABLE agents (
    digest TEXT NOT NULL, 
    agent_id TEXT NOT NULL, 
    version TEXT, 
    document TEXT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_agents PRIMARY KEY (digest)
);

CREATE INDEX ix_agents_agent_id ON agents (agent_id);

CREATE TABLE store_info (
    key BIGINT NOT NULL, 
    id UUID NOT NULL, 
    format BIGINT NOT NULL, 
    artifact_root TEXT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_store_info PRIMARY KEY (key), 
    CONSTRAINT ck_store_info_single CHECK (key = 1)
);

CREATE TABLE bodies (
    digest TEXT NOT NULL, 
    size BIGINT NOT NULL, 
    encoding TEXT NOT NULL, 
    data BYTEA, 
    CONSTRAINT pk_bodies PRIMARY KEY (digest), 
    CONSTRAINT ck_bodies_encoding CHECK (encoding IN ('raw', 'zstd'))
);

CREATE TABLE artifacts (
    path TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    size BIGINT NOT NULL, 
    stored_size BIGINT NOT NULL, 
    line_count BIGINT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_artifacts PRIMARY KEY (path)
);

CREATE TABLE sessions (
    key BIGSERIAL NOT NULL, 
    id UUID NOT NULL, 
    parent_key BIGINT, 
    agent TEXT, 
    agent_digest TEXT, 
    title TEXT, 
    environment TEXT NOT NULL, 
    opened_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_sessions PRIMARY KEY (key), 
    CONSTRAINT fk_sessions_agent_digest FOREIGN KEY(agent_digest) REFERENCES agents (digest), 
    CONSTRAINT fk_sessions_parent_key FOREIGN KEY(parent_key) REFERENCES sessions (key), 
    CONSTRAINT uq_sessions_id UNIQUE (id)
);

CREATE INDEX ix_sessions_opened_at ON sessions (opened_at);

CREATE INDEX ix_sessions_parent_key ON sessions (parent_key);

CREATE TABLE messages (
    key BIGSERIAL NOT NULL, 
    id UUID NOT NULL, 
    session_key BIGINT NOT NULL, 
    seq BIGINT NOT NULL, 
    role TEXT NOT NULL, 
    body_digest TEXT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_messages PRIMARY KEY (key), 
    CONSTRAINT fk_messages_body_digest FOREIGN KEY(body_digest) REFERENCES bodies (digest), 
    CONSTRAINT fk_messages_session_key FOREIGN KEY(session_key) REFERENCES sessions (key), 
    CONSTRAINT uq_messages_id UNIQUE (id), 
    CONSTRAINT uq_messages_session_key_seq UNIQUE (session_key, seq)
);

CREATE TABLE invocations (
    key BIGSERIAL NOT NULL, 
    id UUID NOT NULL, 
    session_key BIGINT NOT NULL, 
    seq BIGINT NOT NULL, 
    call_id TEXT, 
    tool_name TEXT NOT NULL, 
    tool_digest TEXT, 
    family TEXT NOT NULL, 
    policy_digest TEXT NOT NULL, 
    arguments_digest TEXT NOT NULL, 
    arguments_preview TEXT NOT NULL, 
    started_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    state TEXT NOT NULL, 
    finished_at TIMESTAMP WITH TIME ZONE, 
    duration_ms BIGINT, 
    error_kind TEXT, 
    exit_status BIGINT, 
    signal BIGINT, 
    timed_out BOOLEAN, 
    output_size BIGINT, 
    truncated BOOLEAN, 
    CONSTRAINT pk_invocations PRIMARY KEY (key), 
    CONSTRAINT ck_invocations_finished CHECK ((state = 'started') = (finished_at IS NULL)), 
    CONSTRAINT ck_invocations_state CHECK (state IN ('started', 'success', 'error', 'interrupted', 'denied', 'cancelled')), 
    CONSTRAINT fk_invocations_arguments_digest FOREIGN KEY(arguments_digest) REFERENCES bodies (digest), 
    CONSTRAINT fk_invocations_policy_digest FOREIGN KEY(policy_digest) REFERENCES policies (digest), 
    CONSTRAINT fk_invocations_session_key FOREIGN KEY(session_key) REFERENCES sessions (key), 
    CONSTRAINT fk_invocations_tool_digest FOREIGN KEY(tool_digest) REFERENCES tools (digest), 
    CONSTRAINT uq_invocations_id UNIQUE (id), 
    CONSTRAINT uq_invocations_session_key_seq UNIQUE (session_key, seq)
);

CREATE INDEX ix_invocations_call_id ON invocations USING hash (call_id) WHERE call_id IS NOT NULL;

CREATE INDEX ix_invocations_error_kind ON invocations (error_kind) WHERE error_kind IS NOT NULL;

CREATE INDEX ix_invocations_started_at ON invocations (started_at);

CREATE INDEX ix_invocations_state ON invocations (state) WHERE state <> 'success';

CREATE INDEX ix_invocations_tool_name_started_at ON invocations (tool_name, started_at);

CREATE TABLE complete_outputs (
    invocation_key BIGINT NOT NULL, 
    document TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    CONSTRAINT pk_complete_outputs PRIMARY KEY (invocation_key), 
    CONSTRAINT fk_complete_outputs_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key)
);

CREATE TABLE output_streams (
    invocation_key BIGINT NOT NULL, 
    n BIGINT NOT NULL, 
    role TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    size BIGINT NOT NULL, 
    line_count BIGINT NOT NULL, 
    produced_size BIGINT NOT NULL, 
    produced_line_count BIGINT NOT NULL, 
    loss_reason TEXT, 
    artifact_path TEXT, 
    CONSTRAINT pk_output_streams PRIMARY KEY (invocation_key, n), 
    CONSTRAINT fk_output_streams_artifact_path FOREIGN KEY(artifact_path) REFERENCES artifacts (path), 
    CONSTRAINT fk_output_streams_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key)
);

CREATE INDEX ix_output_streams_digest ON output_streams (digest);

CREATE TABLE canonical_results (
    invocation_key BIGINT NOT NULL, 
    status TEXT NOT NULL, 
    summary_text TEXT NOT NULL, 
    document TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    CONSTRAINT pk_canonical_results PRIMARY KEY (invocation_key), 
    CONSTRAINT fk_canonical_results_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key)
);

CREATE TABLE receipts (
    invocation_key BIGINT NOT NULL, 
    n BIGINT NOT NULL, 
    renderer_name TEXT NOT NULL, 
    renderer_version BIGINT NOT NULL, 
    policy_digest TEXT NOT NULL, 
    body_digest TEXT NOT NULL, 
    size BIGINT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_receipts PRIMARY KEY (invocation_key, n), 
    CONSTRAINT fk_receipts_body_digest FOREIGN KEY(body_digest) REFERENCES bodies (digest), 
    CONSTRAINT fk_receipts_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key), 
    CONSTRAINT fk_receipts_policy_digest FOREIGN KEY(policy_digest) REFERENCES policies (digest)
);

CREATE TABLE invocation_artifacts (
    invocation_key BIGINT NOT NULL, 
    n BIGINT NOT NULL, 
    role TEXT NOT NULL, 
    path TEXT NOT NULL, 
    CONSTRAINT pk_invocation_artifacts PRIMARY KEY (invocation_key, n), 
    CONSTRAINT fk_invocation_artifacts_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key), 
    CONSTRAINT fk_invocation_artifacts_path FOREIGN KEY(path) REFERENCES artifacts (path)
);

CREATE INDEX ix_invocation_artifacts_path ON invocation_artifacts (path);

CREATE TABLE omissions (
    invocation_key BIGINT NOT NULL, 
    n BIGINT NOT NULL, 
    stage TEXT NOT NULL, 
    field TEXT NOT NULL, 
    unit TEXT NOT NULL, 
    before_count BIGINT NOT NULL, 
    after_count BIGINT NOT NULL, 
    reason TEXT NOT NULL, 
    CONSTRAINT pk_omissions PRIMARY KEY (invocation_key, n), 
    CONSTRAINT ck_omissions_counts CHECK (after_count < before_count), 
    CONSTRAINT fk_omissions_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key)
);

CREATE TABLE redactions (
    invocation_key BIGINT NOT NULL, 
    n BIGINT NOT NULL, 
    role TEXT NOT NULL, 
    rule TEXT NOT NULL, 
    match_count BIGINT NOT NULL, 
    CONSTRAINT pk_redactions PRIMARY KEY (invocation_key, n), 
    CONSTRAINT fk_redactions_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key)
);

CREATE TABLE structured_outputs (
    invocation_key BIGINT NOT NULL, 
    agent_digest TEXT, 
    schema_digest TEXT NOT NULL, 
    attempt BIGINT NOT NULL, 
    valid BOOLEAN NOT NULL, 
    document TEXT NOT NULL, 
    CONSTRAINT pk_structured_outputs PRIMARY KEY (invocation_key), 
    CONSTRAINT fk_structured_outputs_agent_digest FOREIGN KEY(agent_digest) REFERENCES agents (digest), 
    CONSTRAINT fk_structured_outputs_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key)
);

CREATE TABLE ledger_entries (
    session_key BIGINT NOT NULL, 
    n BIGINT NOT NULL, 
    kind TEXT NOT NULL, 
    subject_id UUID NOT NULL, 
    happened_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    payload TEXT NOT NULL, 
    previous TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    CONSTRAINT pk_ledger_entries PRIMARY KEY (session_key, n), 
    CONSTRAINT fk_ledger_entries_session_key FOREIGN KEY(session_key) REFERENCES sessions (key)
);

CREATE TABLE ledger_heads (
    session_key BIGINT NOT NULL, 
    entry_count BIGINT NOT NULL, 
    digest TEXT NOT NULL, 
    next_seq BIGINT NOT NULL, 
    closed_at TIMESTAMP WITH TIME ZONE, 
    CONSTRAINT pk_ledger_heads PRIMARY KEY (session_key), 
    CONSTRAINT fk_ledger_heads_session_key FOREIGN KEY(session_key) REFERENCES sessions (key)
);

CREATE TABLE checkpoints (
    key BIGSERIAL NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    document TEXT NOT NULL, 
    root TEXT NOT NULL, 
    key_id TEXT, 
    signature BYTEA, 
    CONSTRAINT pk_checkpoints PRIMARY KEY (key)
);

CREATE TABLE tombstones (
    key BIGSERIAL NOT NULL, 
    kind TEXT NOT NULL, 
    subject TEXT NOT NULL, 
    size BIGINT NOT NULL, 
    reason TEXT NOT NULL, 
    rule TEXT NOT NULL, 
    actor TEXT NOT NULL, 
    removed_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_tombstones PRIMARY KEY (key), 
    CONSTRAINT ck_tombstones_kind CHECK (kind IN ('body', 'artifact'))
);

CREATE INDEX ix_tombstones_subject ON tombstones (subject);

CREATE TABLE holds (
    key BIGSERIAL NOT NULL, 
    id UUID NOT NULL, 
    session_key BIGINT, 
    invocation_key BIGINT, 
    releases_key BIGINT, 
    reason TEXT NOT NULL, 
    actor TEXT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_holds PRIMARY KEY (key), 
    CONSTRAINT fk_holds_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key), 
    CONSTRAINT fk_holds_releases_key FOREIGN KEY(releases_key) REFERENCES holds (key), 
    CONSTRAINT fk_holds_session_key FOREIGN KEY(session_key) REFERENCES sessions (key), 
    CONSTRAINT uq_holds_id UNIQUE (id)
);

CREATE INDEX ix_holds_invocation_key ON holds (invocation_key);

CREATE INDEX ix_holds_session_key ON holds (session_key);

CREATE FUNCTION tooltrail_refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END $$;

CREATE FUNCTION tooltrail_refuse_unless_erased() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.digest IS DISTINCT FROM OLD.digest OR NEW.size IS DISTINCT FROM OLD.size OR (OLD.data IS NULL) = (NEW.data IS NULL) OR (NEW.data IS NULL AND (NEW.encoding IS DISTINCT FROM OLD.encoding OR NOT EXISTS (SELECT 1 FROM tombstones t WHERE t.kind = 'body' AND t.subject = OLD.digest))) THEN RAISE EXCEPTION '% is append-only', TG_TABLE_NAME; END IF; RETURN NEW; END $$;

CREATE TRIGGER policies_no_delete BEFORE DELETE ON policies FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER policies_no_truncate BEFORE TRUNCATE ON policies FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER policies_no_update BEFORE UPDATE ON policies FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tools_no_delete BEFORE DELETE ON tools FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tools_no_truncate BEFORE TRUNCATE ON tools FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tools_no_update BEFORE UPDATE ON tools FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agents_no_delete BEFORE DELETE ON agents FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agents_no_truncate BEFORE TRUNCATE ON agents FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agents_no_update BEFORE UPDATE ON agents FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER store_info_no_delete BEFORE DELETE ON store_info FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER store_info_no_truncate BEFORE TRUNCATE ON store_info FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER store_info_no_update BEFORE UPDATE ON store_info FOR EACH ROW WHEN (NEW.id IS DISTINCT FROM OLD.id OR NEW.created_at IS DISTINCT FROM OLD.created_at) EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER bodies_no_truncate BEFORE TRUNCATE ON bodies FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse_unless_erased();

CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON artifacts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER artifacts_no_truncate BEFORE TRUNCATE ON artifacts FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON artifacts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER sessions_no_truncate BEFORE TRUNCATE ON sessions FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER sessions_no_update BEFORE UPDATE ON sessions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER messages_no_truncate BEFORE TRUNCATE ON messages FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER messages_no_update BEFORE UPDATE ON messages FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocations_no_delete BEFORE DELETE ON invocations FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocations_no_truncate BEFORE TRUNCATE ON invocations FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocations_no_update BEFORE UPDATE ON invocations FOR EACH ROW WHEN (OLD.state <> 'started' OR NEW.state = 'started' OR NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.session_key IS DISTINCT FROM OLD.session_key OR NEW.seq IS DISTINCT FROM OLD.seq OR NEW.call_id IS DISTINCT FROM OLD.call_id OR NEW.tool_name IS DISTINCT FROM OLD.tool_name OR NEW.tool_digest IS DISTINCT FROM OLD.tool_digest OR NEW.family IS DISTINCT FROM OLD.family OR NEW.policy_digest IS DISTINCT FROM OLD.policy_digest OR NEW.arguments_digest IS DISTINCT FROM OLD.arguments_digest OR NEW.arguments_preview IS DISTINCT FROM OLD.arguments_preview OR NEW.started_at IS DISTINCT FROM OLD.started_at) EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER complete_outputs_no_delete BEFORE DELETE ON complete_outputs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER complete_outputs_no_truncate BEFORE TRUNCATE ON complete_outputs FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER complete_outputs_no_update BEFORE UPDATE ON complete_outputs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER output_streams_no_delete BEFORE DELETE ON output_streams FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER output_streams_no_truncate BEFORE TRUNCATE ON output_streams FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER output_streams_no_update BEFORE UPDATE ON output_streams FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER canonical_results_no_delete BEFORE DELETE ON canonical_results FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER canonical_results_no_truncate BEFORE TRUNCATE ON canonical_results FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER canonical_results_no_update BEFORE UPDATE ON canonical_results FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER receipts_no_delete BEFORE DELETE ON receipts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER receipts_no_truncate BEFORE TRUNCATE ON receipts FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER receipts_no_update BEFORE UPDATE ON receipts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocation_artifacts_no_delete BEFORE DELETE ON invocation_artifacts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocation_artifacts_no_truncate BEFORE TRUNCATE ON invocation_artifacts FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER invocation_artifacts_no_update BEFORE UPDATE ON invocation_artifacts FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER omissions_no_delete BEFORE DELETE ON omissions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER omissions_no_truncate BEFORE TRUNCATE ON omissions FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER omissions_no_update BEFORE UPDATE ON omissions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER redactions_no_delete BEFORE DELETE ON redactions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER redactions_no_truncate BEFORE TRUNCATE ON redactions FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER redactions_no_update BEFORE UPDATE ON redactions FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER structured_outputs_no_delete BEFORE DELETE ON structured_outputs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER structured_outputs_no_truncate BEFORE TRUNCATE ON structured_outputs FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER structured_outputs_no_update BEFORE UPDATE ON structured_outputs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_entries_no_delete BEFORE DELETE ON ledger_entries FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_entries_no_truncate BEFORE TRUNCATE ON ledger_entries FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_entries_no_update BEFORE UPDATE ON ledger_entries FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_heads_no_delete BEFORE DELETE ON ledger_heads FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_heads_no_truncate BEFORE TRUNCATE ON ledger_heads FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER ledger_heads_no_update BEFORE UPDATE ON ledger_heads FOR EACH ROW WHEN (NEW.session_key IS DISTINCT FROM OLD.session_key OR NEW.entry_count <= OLD.entry_count OR NEW.next_seq < OLD.next_seq OR OLD.closed_at IS NOT NULL AND NEW.closed_at IS DISTINCT FROM OLD.closed_at) EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER checkpoints_no_truncate BEFORE TRUNCATE ON checkpoints FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tombstones_no_delete BEFORE DELETE ON tombstones FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tombstones_no_truncate BEFORE TRUNCATE ON tombstones FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tombstones_no_update BEFORE UPDATE ON tombstones FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER holds_no_delete BEFORE DELETE ON holds FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER holds_no_truncate BEFORE TRUNCATE ON holds FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER holds_no_update BEFORE UPDATE ON holds FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

INSERT INTO tooltrail_version (version_num) VALUES ('0001') RETURNING tooltrail_version.version_num;

-- Running upgrade 0001 -> 0002

ALTER TABLE artifacts ADD COLUMN frame_index BYTEA;

ALTER TABLE output_streams ADD COLUMN postponed_reason TEXT;

CREATE TABLE maintenance_runs (
    key BIGSERIAL NOT NULL, 
    id UUID NOT NULL, 
    kind TEXT NOT NULL, 
    environment TEXT NOT NULL, 
    facts TEXT NOT NULL, 
    started_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    object_count BIGINT NOT NULL, 
    stored_bytes BIGINT NOT NULL, 
    finished_at TIMESTAMP WITH TIME ZONE, 
    outcome TEXT, 
    report TEXT, 
    CONSTRAINT pk_maintenance_runs PRIMARY KEY (key), 
    CONSTRAINT ck_maintenance_runs_finished CHECK ((finished_at IS NULL) = (outcome IS NULL)), 
    CONSTRAINT ck_maintenance_runs_kind CHECK (kind IN ('gc', 'relocate', 'repair')), 
    CONSTRAINT ck_maintenance_runs_outcome CHECK (outcome IN ('finished', 'interrupted', 'failed', 'abandoned')), 
    CONSTRAINT uq_maintenance_runs_id UNIQUE (id)
);

CREATE INDEX ix_maintenance_runs_finished_at ON maintenance_runs (finished_at) WHERE finished_at IS NULL;

CREATE TRIGGER maintenance_runs_no_delete BEFORE DELETE ON maintenance_runs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER maintenance_runs_no_truncate BEFORE TRUNCATE ON maintenance_runs FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER maintenance_runs_no_update BEFORE UPDATE ON maintenance_runs FOR EACH ROW WHEN (OLD.finished_at IS NOT NULL OR NEW.object_count < OLD.object_count OR NEW.stored_bytes < OLD.stored_bytes OR (NEW.finished_at IS NULL AND NEW.object_count = OLD.object_count) OR NEW.key IS DISTINCT FROM OLD.key OR NEW.id IS DISTINCT FROM OLD.id OR NEW.kind IS DISTINCT FROM OLD.kind OR NEW.environment IS DISTINCT FROM OLD.environment OR NEW.facts IS DISTINCT FROM OLD.facts OR NEW.started_at IS DISTINCT FROM OLD.started_at) EXECUTE FUNCTION tooltrail_refuse();

UPDATE tooltrail_version SET version_num='0002' WHERE tooltrail_version.version_num = '0001';

-- Running upgrade 0002 -> 0003

CREATE TABLE idempotency_keys (
    digest TEXT NOT NULL, 
    name TEXT NOT NULL, 
    kind TEXT NOT NULL, 
    subject_id UUID NOT NULL, 
    fingerprint TEXT NOT NULL, 
    created_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (digest), 
    CONSTRAINT ck_idempotency_keys_kind CHECK (kind IN ('session', 'invocation'))
);

CREATE TRIGGER idempotency_keys_no_update BEFORE UPDATE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER idempotency_keys_no_delete BEFORE DELETE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER idempotency_keys_no_truncate BEFORE TRUNCATE ON idempotency_keys FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

UPDATE tooltrail_version SET version_num='0003' WHERE tooltrail_version.version_num = '0002';

-- Running upgrade 0003 -> 0004

DROP INDEX ix_invocations_state;

DROP INDEX ix_invocations_error_kind;

CREATE INDEX ix_invocations_state_error_kind ON invocations (state, error_kind) WHERE state <> 'success';

CREATE INDEX ix_invocations_exit_status ON invocations (exit_status) WHERE exit_status <> 0;

CREATE INDEX ix_invocations_output_size ON invocations (output_size) WHERE output_size >= 4096;

UPDATE tooltrail_version SET version_num='0004' WHERE tooltrail_version.version_num = '0003';

-- Running upgrade 0004 -> 0005

CREATE TABLE range_traits (
    trait BIGINT NOT NULL, 
    range_number BIGINT NOT NULL, 
    members BYTEA NOT NULL, 
    CONSTRAINT pk_range_traits PRIMARY KEY (trait, range_number)
);

UPDATE tooltrail_version SET version_num='0005' WHERE tooltrail_version.version_num = '0004';

-- Running upgrade 0005 -> 0006

CREATE TABLE message_documents (
    message_key BIGINT NOT NULL, 
    wire_format TEXT, 
    document_digest TEXT NOT NULL, 
    payload_digest TEXT, 
    CONSTRAINT pk_message_documents PRIMARY KEY (message_key), 
    CONSTRAINT fk_message_documents_message_key FOREIGN KEY(message_key) REFERENCES messages (key), 
    CONSTRAINT fk_message_documents_document_digest FOREIGN KEY(document_digest) REFERENCES bodies (digest), 
    CONSTRAINT fk_message_documents_payload_digest FOREIGN KEY(payload_digest) REFERENCES bodies (digest)
);

CREATE TABLE call_origins (
    invocation_key BIGINT NOT NULL, 
    message_key BIGINT NOT NULL, 
    position BIGINT NOT NULL, 
    CONSTRAINT pk_call_origins PRIMARY KEY (invocation_key), 
    CONSTRAINT fk_call_origins_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations (key), 
    CONSTRAINT fk_call_origins_message_key FOREIGN KEY(message_key) REFERENCES messages (key)
);

CREATE TABLE tool_offers (
    message_key BIGINT NOT NULL, 
    position BIGINT NOT NULL, 
    tool_digest TEXT NOT NULL, 
    CONSTRAINT pk_tool_offers PRIMARY KEY (message_key, position), 
    CONSTRAINT fk_tool_offers_message_key FOREIGN KEY(message_key) REFERENCES messages (key), 
    CONSTRAINT fk_tool_offers_tool_digest FOREIGN KEY(tool_digest) REFERENCES tools (digest)
);

CREATE TRIGGER message_documents_no_update BEFORE UPDATE ON message_documents FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER message_documents_no_delete BEFORE DELETE ON message_documents FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER message_documents_no_truncate BEFORE TRUNCATE ON message_documents FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER call_origins_no_update BEFORE UPDATE ON call_origins FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER call_origins_no_delete BEFORE DELETE ON call_origins FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER call_origins_no_truncate BEFORE TRUNCATE ON call_origins FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tool_offers_no_update BEFORE UPDATE ON tool_offers FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tool_offers_no_delete BEFORE DELETE ON tool_offers FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER tool_offers_no_truncate BEFORE TRUNCATE ON tool_offers FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

UPDATE tooltrail_version SET version_num='0006' WHERE tooltrail_version.version_num = '0005';

-- Running upgrade 0006 -> 0007

CREATE TABLE agent_legs (
    message_key BIGINT NOT NULL, 
    session_key BIGINT NOT NULL, 
    run_id UUID NOT NULL, 
    position BIGINT NOT NULL, 
    tier TEXT NOT NULL, 
    model TEXT NOT NULL, 
    wire_format TEXT NOT NULL, 
    agent_id TEXT NOT NULL, 
    agent_digest TEXT NOT NULL, 
    schema_digest TEXT, 
    started_at TIMESTAMP WITH TIME ZONE NOT NULL, 
    document TEXT NOT NULL, 
    CONSTRAINT pk_agent_legs PRIMARY KEY (message_key), 
    CONSTRAINT fk_agent_legs_message_key FOREIGN KEY(message_key) REFERENCES messages (key), 
    CONSTRAINT fk_agent_legs_session_key FOREIGN KEY(session_key) REFERENCES sessions (key), 
    CONSTRAINT fk_agent_legs_agent_digest FOREIGN KEY(agent_digest) REFERENCES agents (digest)
);

CREATE TABLE agent_outcomes (
    message_key BIGINT NOT NULL, 
    session_key BIGINT NOT NULL, 
    outcome TEXT NOT NULL, 
    escalated_to TEXT, 
    attempt_count BIGINT NOT NULL, 
    duration_ms BIGINT NOT NULL, 
    document TEXT NOT NULL, 
    CONSTRAINT pk_agent_outcomes PRIMARY KEY (message_key), 
    CONSTRAINT fk_agent_outcomes_message_key FOREIGN KEY(message_key) REFERENCES messages (key), 
    CONSTRAINT fk_agent_outcomes_session_key FOREIGN KEY(session_key) REFERENCES sessions (key)
);

CREATE INDEX ix_agent_legs_session_key ON agent_legs (session_key);

CREATE INDEX ix_agent_outcomes_session_key ON agent_outcomes (session_key);

CREATE INDEX ix_agent_legs_agent_id_started_at ON agent_legs (agent_id, started_at);

CREATE INDEX ix_agent_legs_started_at ON agent_legs (started_at);

CREATE TRIGGER agent_legs_no_update BEFORE UPDATE ON agent_legs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_legs_no_delete BEFORE DELETE ON agent_legs FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_legs_no_truncate BEFORE TRUNCATE ON agent_legs FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_outcomes_no_update BEFORE UPDATE ON agent_outcomes FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_outcomes_no_delete BEFORE DELETE ON agent_outcomes FOR EACH ROW EXECUTE FUNCTION tooltrail_refuse();

CREATE TRIGGER agent_outcomes_no_truncate BEFORE TRUNCATE ON agent_outcomes FOR EACH STATEMENT EXECUTE FUNCTION tooltrail_refuse();

UPDATE tooltrail_version SET version_num='0007' WHERE tooltrail_version.version_num = '0006';

COMMIT;

BEGIN;

-- Running downgrade 0007 -> 0006

DROP TABLE agent_outcomes;

DROP TABLE agent_legs;

UPDATE tooltrail_version SET version_num='0006' WHERE tooltrail_version.version_num = '0007';

-- Running downgrade 0006 -> 0005

DROP TABLE tool_offers;

DROP TABLE call_origins;

DROP TABLE message_documents;

UPDATE tooltrail_version SET version_num='0005' WHERE tooltrail_version.version_num = '0006';

-- Running downgrade 0005 -> 0004

DROP TABLE range_traits;

UPDATE tooltrail_version SET version_num='0004' WHERE tooltrail_version.version_num = '0005';

-- Running downgrade 0004 -> 0003

DROP INDEX ix_invocations_output_size;

DROP INDEX ix_invocations_exit_status;

DROP INDEX ix_invocations_state_error_kind;

CREATE INDEX ix_invocations_error_kind ON invocations (error_kind) WHERE error_kind IS NOT NULL;

CREATE INDEX ix_invocations_state ON invocations (state) WHERE state <> 'success';

UPDATE tooltrail_version SET version_num='0003' WHERE tooltrail_version.version_num = '0004';

-- Running downgrade 0003 -> 0002

DROP TABLE idempotency_keys;

UPDATE tooltrail_version SET version_num='0002' WHERE tooltrail_version.version_num = '0003';

-- Running downgrade 0002 -> 0001

DROP TABLE maintenance_runs;

ALTER TABLE output_streams DROP COLUMN postponed_reason;

ALTER TABLE artifacts DROP COLUMN frame_index;

UPDATE tooltrail_version SET version_num='0001' WHERE tooltrail_version.version_num = '0002';

-- Running downgrade 0001 -> 

DROP TABLE holds;

DROP TABLE tombstones;

DROP TABLE checkpoints;

DROP TABLE ledger_heads;

DROP TABLE ledger_entries;

DROP TABLE structured_outputs;

DROP TABLE redactions;

DROP TABLE omissions;

DROP TABLE invocation_artifacts;

DROP TABLE receipts;

DROP TABLE canonical_results;

DROP TABLE output_streams;

DROP TABLE complete_outputs;

DROP TABLE invocations;

DROP TABLE messages;

DROP TABLE sessions;

DROP TABLE artifacts;

DROP TABLE bodies;

DROP TABLE store_info;

DROP TABLE agents;

DROP TABLE tools;

DROP TABLE policies;

DROP FUNCTION tooltrail_refuse();

DROP FUNCTION tooltrail_refuse_unless_erased();

DELETE FROM tooltrail_version WHERE tooltrail_version.version_num = '0001';

COMMIT;

