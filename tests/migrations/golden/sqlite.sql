CREATE TABLE tooltrail_version (
    version_num VARCHAR(32) NOT NULL, 
    CONSTRAINT tooltrail_version_pkc PRIMARY KEY (version_num)
);

-- Running upgrade  -> 0001

CREATE TABLE policies (
    digest TEXT NOT NULL, 
    document TEXT NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_policies PRIMARY KEY (digest)
);

CREATE TABLE tools (
    digest TEXT NOT NULL, 
    name TEXT NOT NULL, 
    family TEXT NOT NULL, 
    document TEXT NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_tools PRIMARY KEY (digest)
);

CREATE INDEX ix_tools_name ON tools (name);

CREATE TABLE agents (
    digest TEXT NOT NULL, 
    agent_id TEXT NOT NULL, 
    version TEXT, 
    document TEXT NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_agents PRIMARY KEY (digest)
);

CREATE INDEX ix_agents_agent_id ON agents (agent_id);

CREATE TABLE store_info (
    "key" INTEGER NOT NULL, 
    id BLOB NOT NULL, 
    format INTEGER NOT NULL, 
    artifact_root TEXT NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_store_info PRIMARY KEY ("key"), 
    CONSTRAINT ck_store_info_single CHECK (key = 1)
);

CREATE TABLE bodies (
    digest TEXT NOT NULL, 
    size INTEGER NOT NULL, 
    encoding TEXT NOT NULL, 
    data BLOB, 
    CONSTRAINT pk_bodies PRIMARY KEY (digest), 
    CONSTRAINT ck_bodies_encoding CHECK (encoding IN ('raw', 'zstd'))
);

CREATE TABLE artifacts (
    path TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    size INTEGER NOT NULL, 
    stored_size INTEGER NOT NULL, 
    line_count INTEGER NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_artifacts PRIMARY KEY (path)
);

CREATE TABLE sessions (
    "key" INTEGER NOT NULL, 
    id BLOB NOT NULL, 
    parent_key INTEGER, 
    agent TEXT, 
    agent_digest TEXT, 
    title TEXT, 
    environment TEXT NOT NULL, 
    opened_at TEXT NOT NULL, 
    CONSTRAINT pk_sessions PRIMARY KEY ("key"), 
    CONSTRAINT fk_sessions_agent_digest FOREIGN KEY(agent_digest) REFERENCES agents (digest), 
    CONSTRAINT fk_sessions_parent_key FOREIGN KEY(parent_key) REFERENCES sessions ("key"), 
    CONSTRAINT uq_sessions_id UNIQUE (id)
);

CREATE INDEX ix_sessions_opened_at ON sessions (opened_at);

CREATE INDEX ix_sessions_parent_key ON sessions (parent_key);

CREATE TABLE messages (
    "key" INTEGER NOT NULL, 
    id BLOB NOT NULL, 
    session_key INTEGER NOT NULL, 
    seq INTEGER NOT NULL, 
    role TEXT NOT NULL, 
    body_digest TEXT NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_messages PRIMARY KEY ("key"), 
    CONSTRAINT fk_messages_body_digest FOREIGN KEY(body_digest) REFERENCES bodies (digest), 
    CONSTRAINT fk_messages_session_key FOREIGN KEY(session_key) REFERENCES sessions ("key"), 
    CONSTRAINT uq_messages_id UNIQUE (id), 
    CONSTRAINT uq_messages_session_key_seq UNIQUE (session_key, seq)
);

CREATE TABLE invocations (
    "key" INTEGER NOT NULL, 
    id BLOB NOT NULL, 
    session_key INTEGER NOT NULL, 
    seq INTEGER NOT NULL, 
    call_id TEXT, 
    tool_name TEXT NOT NULL, 
    tool_digest TEXT, 
    family TEXT NOT NULL, 
    policy_digest TEXT NOT NULL, 
    arguments_digest TEXT NOT NULL, 
    arguments_preview TEXT NOT NULL, 
    started_at TEXT NOT NULL, 
    state TEXT NOT NULL, 
    finished_at TEXT, 
    duration_ms INTEGER, 
    error_kind TEXT, 
    exit_status INTEGER, 
    signal INTEGER, 
    timed_out BOOLEAN, 
    output_size INTEGER, 
    truncated BOOLEAN, 
    CONSTRAINT pk_invocations PRIMARY KEY ("key"), 
    CONSTRAINT ck_invocations_finished CHECK ((state = 'started') = (finished_at IS NULL)), 
    CONSTRAINT ck_invocations_state CHECK (state IN ('started', 'success', 'error', 'interrupted', 'denied', 'cancelled')), 
    CONSTRAINT fk_invocations_arguments_digest FOREIGN KEY(arguments_digest) REFERENCES bodies (digest), 
    CONSTRAINT fk_invocations_policy_digest FOREIGN KEY(policy_digest) REFERENCES policies (digest), 
    CONSTRAINT fk_invocations_session_key FOREIGN KEY(session_key) REFERENCES sessions ("key"), 
    CONSTRAINT fk_invocations_tool_digest FOREIGN KEY(tool_digest) REFERENCES tools (digest), 
    CONSTRAINT uq_invocations_id UNIQUE (id), 
    CONSTRAINT uq_invocations_session_key_seq UNIQUE (session_key, seq)
);

CREATE INDEX ix_invocations_call_id ON invocations (call_id) WHERE call_id IS NOT NULL;

CREATE INDEX ix_invocations_error_kind ON invocations (error_kind) WHERE error_kind IS NOT NULL;

CREATE INDEX ix_invocations_started_at ON invocations (started_at);

CREATE INDEX ix_invocations_state ON invocations (state) WHERE state <> 'success';

CREATE INDEX ix_invocations_tool_name_started_at ON invocations (tool_name, started_at);

CREATE TABLE complete_outputs (
    invocation_key INTEGER NOT NULL, 
    document TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    CONSTRAINT pk_complete_outputs PRIMARY KEY (invocation_key), 
    CONSTRAINT fk_complete_outputs_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key")
);

CREATE TABLE output_streams (
    invocation_key INTEGER NOT NULL, 
    n INTEGER NOT NULL, 
    role TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    size INTEGER NOT NULL, 
    line_count INTEGER NOT NULL, 
    produced_size INTEGER NOT NULL, 
    produced_line_count INTEGER NOT NULL, 
    loss_reason TEXT, 
    artifact_path TEXT, 
    CONSTRAINT pk_output_streams PRIMARY KEY (invocation_key, n), 
    CONSTRAINT fk_output_streams_artifact_path FOREIGN KEY(artifact_path) REFERENCES artifacts (path), 
    CONSTRAINT fk_output_streams_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key")
)
 WITHOUT ROWID;

CREATE INDEX ix_output_streams_digest ON output_streams (digest);

CREATE TABLE canonical_results (
    invocation_key INTEGER NOT NULL, 
    status TEXT NOT NULL, 
    summary_text TEXT NOT NULL, 
    document TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    CONSTRAINT pk_canonical_results PRIMARY KEY (invocation_key), 
    CONSTRAINT fk_canonical_results_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key")
);

CREATE TABLE receipts (
    invocation_key INTEGER NOT NULL, 
    n INTEGER NOT NULL, 
    renderer_name TEXT NOT NULL, 
    renderer_version INTEGER NOT NULL, 
    policy_digest TEXT NOT NULL, 
    body_digest TEXT NOT NULL, 
    size INTEGER NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_receipts PRIMARY KEY (invocation_key, n), 
    CONSTRAINT fk_receipts_body_digest FOREIGN KEY(body_digest) REFERENCES bodies (digest), 
    CONSTRAINT fk_receipts_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key"), 
    CONSTRAINT fk_receipts_policy_digest FOREIGN KEY(policy_digest) REFERENCES policies (digest)
)
 WITHOUT ROWID;

CREATE TABLE invocation_artifacts (
    invocation_key INTEGER NOT NULL, 
    n INTEGER NOT NULL, 
    role TEXT NOT NULL, 
    path TEXT NOT NULL, 
    CONSTRAINT pk_invocation_artifacts PRIMARY KEY (invocation_key, n), 
    CONSTRAINT fk_invocation_artifacts_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key"), 
    CONSTRAINT fk_invocation_artifacts_path FOREIGN KEY(path) REFERENCES artifacts (path)
)
 WITHOUT ROWID;

CREATE INDEX ix_invocation_artifacts_path ON invocation_artifacts (path);

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
    CONSTRAINT ck_omissions_counts CHECK (after_count < before_count), 
    CONSTRAINT fk_omissions_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key")
)
 WITHOUT ROWID;

CREATE TABLE redactions (
    invocation_key INTEGER NOT NULL, 
    n INTEGER NOT NULL, 
    role TEXT NOT NULL, 
    rule TEXT NOT NULL, 
    match_count INTEGER NOT NULL, 
    CONSTRAINT pk_redactions PRIMARY KEY (invocation_key, n), 
    CONSTRAINT fk_redactions_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key")
)
 WITHOUT ROWID;

CREATE TABLE structured_outputs (
    invocation_key INTEGER NOT NULL, 
    agent_digest TEXT, 
    schema_digest TEXT NOT NULL, 
    attempt INTEGER NOT NULL, 
    valid BOOLEAN NOT NULL, 
    document TEXT NOT NULL, 
    CONSTRAINT pk_structured_outputs PRIMARY KEY (invocation_key), 
    CONSTRAINT fk_structured_outputs_agent_digest FOREIGN KEY(agent_digest) REFERENCES agents (digest), 
    CONSTRAINT fk_structured_outputs_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key")
);

CREATE TABLE ledger_entries (
    session_key INTEGER NOT NULL, 
    n INTEGER NOT NULL, 
    kind TEXT NOT NULL, 
    subject_id BLOB NOT NULL, 
    happened_at TEXT NOT NULL, 
    payload TEXT NOT NULL, 
    previous TEXT NOT NULL, 
    digest TEXT NOT NULL, 
    CONSTRAINT pk_ledger_entries PRIMARY KEY (session_key, n), 
    CONSTRAINT fk_ledger_entries_session_key FOREIGN KEY(session_key) REFERENCES sessions ("key")
)
 WITHOUT ROWID;

CREATE TABLE ledger_heads (
    session_key INTEGER NOT NULL, 
    entry_count INTEGER NOT NULL, 
    digest TEXT NOT NULL, 
    next_seq INTEGER NOT NULL, 
    closed_at TEXT, 
    CONSTRAINT pk_ledger_heads PRIMARY KEY (session_key), 
    CONSTRAINT fk_ledger_heads_session_key FOREIGN KEY(session_key) REFERENCES sessions ("key")
);

CREATE TABLE checkpoints (
    "key" INTEGER NOT NULL, 
    created_at TEXT NOT NULL, 
    document TEXT NOT NULL, 
    root TEXT NOT NULL, 
    key_id TEXT, 
    signature BLOB, 
    CONSTRAINT pk_checkpoints PRIMARY KEY ("key")
);

CREATE TABLE tombstones (
    "key" INTEGER NOT NULL, 
    kind TEXT NOT NULL, 
    subject TEXT NOT NULL, 
    size INTEGER NOT NULL, 
    reason TEXT NOT NULL, 
    rule TEXT NOT NULL, 
    actor TEXT NOT NULL, 
    removed_at TEXT NOT NULL, 
    CONSTRAINT pk_tombstones PRIMARY KEY ("key"), 
    CONSTRAINT ck_tombstones_kind CHECK (kind IN ('body', 'artifact'))
);

CREATE INDEX ix_tombstones_subject ON tombstones (subject);

CREATE TABLE holds (
    "key" INTEGER NOT NULL, 
    id BLOB NOT NULL, 
    session_key INTEGER, 
    invocation_key INTEGER, 
    releases_key INTEGER, 
    reason TEXT NOT NULL, 
    actor TEXT NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_holds PRIMARY KEY ("key"), 
    CONSTRAINT fk_holds_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key"), 
    CONSTRAINT fk_holds_releases_key FOREIGN KEY(releases_key) REFERENCES holds ("key"), 
    CONSTRAINT fk_holds_session_key FOREIGN KEY(session_key) REFERENCES sessions ("key"), 
    CONSTRAINT uq_holds_id UNIQUE (id)
);

CREATE INDEX ix_holds_invocation_key ON holds (invocation_key);

CREATE INDEX ix_holds_session_key ON holds (session_key);

CREATE TRIGGER policies_no_delete BEFORE DELETE ON policies BEGIN SELECT RAISE(ABORT, 'policies is append-only'); END;

CREATE TRIGGER policies_no_update BEFORE UPDATE ON policies BEGIN SELECT RAISE(ABORT, 'policies is append-only'); END;

CREATE TRIGGER tools_no_delete BEFORE DELETE ON tools BEGIN SELECT RAISE(ABORT, 'tools is append-only'); END;

CREATE TRIGGER tools_no_update BEFORE UPDATE ON tools BEGIN SELECT RAISE(ABORT, 'tools is append-only'); END;

CREATE TRIGGER agents_no_delete BEFORE DELETE ON agents BEGIN SELECT RAISE(ABORT, 'agents is append-only'); END;

CREATE TRIGGER agents_no_update BEFORE UPDATE ON agents BEGIN SELECT RAISE(ABORT, 'agents is append-only'); END;

CREATE TRIGGER store_info_no_delete BEFORE DELETE ON store_info BEGIN SELECT RAISE(ABORT, 'store_info is append-only'); END;

CREATE TRIGGER store_info_no_update BEFORE UPDATE ON store_info WHEN NEW.id IS NOT OLD.id OR NEW.created_at IS NOT OLD.created_at BEGIN SELECT RAISE(ABORT, 'store_info is append-only'); END;

CREATE TRIGGER bodies_no_delete BEFORE DELETE ON bodies BEGIN SELECT RAISE(ABORT, 'bodies is append-only'); END;

CREATE TRIGGER bodies_no_update BEFORE UPDATE ON bodies WHEN NEW.digest IS NOT OLD.digest OR NEW.size IS NOT OLD.size OR (OLD.data IS NULL) = (NEW.data IS NULL) OR (NEW.data IS NULL AND (NEW.encoding IS NOT OLD.encoding OR NOT EXISTS (SELECT 1 FROM tombstones t WHERE t.kind = 'body' AND t.subject = OLD.digest))) BEGIN SELECT RAISE(ABORT, 'bodies is append-only'); END;

CREATE TRIGGER artifacts_no_delete BEFORE DELETE ON artifacts BEGIN SELECT RAISE(ABORT, 'artifacts is append-only'); END;

CREATE TRIGGER artifacts_no_update BEFORE UPDATE ON artifacts BEGIN SELECT RAISE(ABORT, 'artifacts is append-only'); END;

CREATE TRIGGER sessions_no_delete BEFORE DELETE ON sessions BEGIN SELECT RAISE(ABORT, 'sessions is append-only'); END;

CREATE TRIGGER sessions_no_update BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'sessions is append-only'); END;

CREATE TRIGGER messages_no_delete BEFORE DELETE ON messages BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;

CREATE TRIGGER messages_no_update BEFORE UPDATE ON messages BEGIN SELECT RAISE(ABORT, 'messages is append-only'); END;

CREATE TRIGGER invocations_no_delete BEFORE DELETE ON invocations BEGIN SELECT RAISE(ABORT, 'invocations is append-only'); END;

CREATE TRIGGER invocations_no_update BEFORE UPDATE ON invocations WHEN OLD.state <> 'started' OR NEW.state = 'started' OR NEW.key IS NOT OLD.key OR NEW.id IS NOT OLD.id OR NEW.session_key IS NOT OLD.session_key OR NEW.seq IS NOT OLD.seq OR NEW.call_id IS NOT OLD.call_id OR NEW.tool_name IS NOT OLD.tool_name OR NEW.tool_digest IS NOT OLD.tool_digest OR NEW.family IS NOT OLD.family OR NEW.policy_digest IS NOT OLD.policy_digest OR NEW.arguments_digest IS NOT OLD.arguments_digest OR NEW.arguments_preview IS NOT OLD.arguments_preview OR NEW.started_at IS NOT OLD.started_at BEGIN SELECT RAISE(ABORT, 'invocations is append-only'); END;

CREATE TRIGGER complete_outputs_no_delete BEFORE DELETE ON complete_outputs BEGIN SELECT RAISE(ABORT, 'complete_outputs is append-only'); END;

CREATE TRIGGER complete_outputs_no_update BEFORE UPDATE ON complete_outputs BEGIN SELECT RAISE(ABORT, 'complete_outputs is append-only'); END;

CREATE TRIGGER output_streams_no_delete BEFORE DELETE ON output_streams BEGIN SELECT RAISE(ABORT, 'output_streams is append-only'); END;

CREATE TRIGGER output_streams_no_update BEFORE UPDATE ON output_streams BEGIN SELECT RAISE(ABORT, 'output_streams is append-only'); END;

CREATE TRIGGER canonical_results_no_delete BEFORE DELETE ON canonical_results BEGIN SELECT RAISE(ABORT, 'canonical_results is append-only'); END;

CREATE TRIGGER canonical_results_no_update BEFORE UPDATE ON canonical_results BEGIN SELECT RAISE(ABORT, 'canonical_results is append-only'); END;

CREATE TRIGGER receipts_no_delete BEFORE DELETE ON receipts BEGIN SELECT RAISE(ABORT, 'receipts is append-only'); END;

CREATE TRIGGER receipts_no_update BEFORE UPDATE ON receipts BEGIN SELECT RAISE(ABORT, 'receipts is append-only'); END;

CREATE TRIGGER invocation_artifacts_no_delete BEFORE DELETE ON invocation_artifacts BEGIN SELECT RAISE(ABORT, 'invocation_artifacts is append-only'); END;

CREATE TRIGGER invocation_artifacts_no_update BEFORE UPDATE ON invocation_artifacts BEGIN SELECT RAISE(ABORT, 'invocation_artifacts is append-only'); END;

CREATE TRIGGER omissions_no_delete BEFORE DELETE ON omissions BEGIN SELECT RAISE(ABORT, 'omissions is append-only'); END;

CREATE TRIGGER omissions_no_update BEFORE UPDATE ON omissions BEGIN SELECT RAISE(ABORT, 'omissions is append-only'); END;

CREATE TRIGGER redactions_no_delete BEFORE DELETE ON redactions BEGIN SELECT RAISE(ABORT, 'redactions is append-only'); END;

CREATE TRIGGER redactions_no_update BEFORE UPDATE ON redactions BEGIN SELECT RAISE(ABORT, 'redactions is append-only'); END;

CREATE TRIGGER structured_outputs_no_delete BEFORE DELETE ON structured_outputs BEGIN SELECT RAISE(ABORT, 'structured_outputs is append-only'); END;

CREATE TRIGGER structured_outputs_no_update BEFORE UPDATE ON structured_outputs BEGIN SELECT RAISE(ABORT, 'structured_outputs is append-only'); END;

CREATE TRIGGER ledger_entries_no_delete BEFORE DELETE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'ledger_entries is append-only'); END;

CREATE TRIGGER ledger_entries_no_update BEFORE UPDATE ON ledger_entries BEGIN SELECT RAISE(ABORT, 'ledger_entries is append-only'); END;

CREATE TRIGGER ledger_heads_no_delete BEFORE DELETE ON ledger_heads BEGIN SELECT RAISE(ABORT, 'ledger_heads is append-only'); END;

CREATE TRIGGER ledger_heads_no_update BEFORE UPDATE ON ledger_heads WHEN NEW.session_key IS NOT OLD.session_key OR NEW.entry_count <= OLD.entry_count OR NEW.next_seq < OLD.next_seq OR OLD.closed_at IS NOT NULL AND NEW.closed_at IS NOT OLD.closed_at BEGIN SELECT RAISE(ABORT, 'ledger_heads is append-only'); END;

CREATE TRIGGER checkpoints_no_delete BEFORE DELETE ON checkpoints BEGIN SELECT RAISE(ABORT, 'checkpoints is append-only'); END;

CREATE TRIGGER checkpoints_no_update BEFORE UPDATE ON checkpoints BEGIN SELECT RAISE(ABORT, 'checkpoints is append-only'); END;

CREATE TRIGGER tombstones_no_delete BEFORE DELETE ON tombstones BEGIN SELECT RAISE(ABORT, 'tombstones is append-only'); END;

CREATE TRIGGER tombstones_no_update BEFORE UPDATE ON tombstones BEGIN SELECT RAISE(ABORT, 'tombstones is append-only'); END;

CREATE TRIGGER holds_no_delete BEFORE DELETE ON holds BEGIN SELECT RAISE(ABORT, 'holds is append-only'); END;

CREATE TRIGGER holds_no_update BEFORE UPDATE ON holds BEGIN SELECT RAISE(ABORT, 'holds is append-only'); END;

INSERT INTO tooltrail_version (version_num) VALUES ('0001') RETURNING version_num;

-- Running upgrade 0001 -> 0002

ALTER TABLE artifacts ADD COLUMN frame_index BLOB;

ALTER TABLE output_streams ADD COLUMN postponed_reason TEXT;

CREATE TABLE maintenance_runs (
    "key" INTEGER NOT NULL, 
    id BLOB NOT NULL, 
    kind TEXT NOT NULL, 
    environment TEXT NOT NULL, 
    facts TEXT NOT NULL, 
    started_at TEXT NOT NULL, 
    object_count INTEGER NOT NULL, 
    stored_bytes INTEGER NOT NULL, 
    finished_at TEXT, 
    outcome TEXT, 
    report TEXT, 
    CONSTRAINT pk_maintenance_runs PRIMARY KEY ("key"), 
    CONSTRAINT ck_maintenance_runs_finished CHECK ((finished_at IS NULL) = (outcome IS NULL)), 
    CONSTRAINT ck_maintenance_runs_kind CHECK (kind IN ('gc', 'relocate', 'repair')), 
    CONSTRAINT ck_maintenance_runs_outcome CHECK (outcome IN ('finished', 'interrupted', 'failed', 'abandoned')), 
    CONSTRAINT uq_maintenance_runs_id UNIQUE (id)
);

CREATE INDEX ix_maintenance_runs_finished_at ON maintenance_runs (finished_at) WHERE finished_at IS NULL;

CREATE TRIGGER maintenance_runs_no_delete BEFORE DELETE ON maintenance_runs BEGIN SELECT RAISE(ABORT, 'maintenance_runs is append-only'); END;

CREATE TRIGGER maintenance_runs_no_update BEFORE UPDATE ON maintenance_runs WHEN OLD.finished_at IS NOT NULL OR NEW.object_count < OLD.object_count OR NEW.stored_bytes < OLD.stored_bytes OR (NEW.finished_at IS NULL AND NEW.object_count = OLD.object_count) OR NEW.key IS NOT OLD.key OR NEW.id IS NOT OLD.id OR NEW.kind IS NOT OLD.kind OR NEW.environment IS NOT OLD.environment OR NEW.facts IS NOT OLD.facts OR NEW.started_at IS NOT OLD.started_at BEGIN SELECT RAISE(ABORT, 'maintenance_runs is append-only'); END;

UPDATE tooltrail_version SET version_num='0002' WHERE tooltrail_version.version_num = '0001';

-- Running upgrade 0002 -> 0003

CREATE TABLE idempotency_keys (
    digest TEXT NOT NULL, 
    name TEXT NOT NULL, 
    kind TEXT NOT NULL, 
    subject_id BLOB NOT NULL, 
    fingerprint TEXT NOT NULL, 
    created_at TEXT NOT NULL, 
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (digest), 
    CONSTRAINT ck_idempotency_keys_kind CHECK (kind IN ('session', 'invocation'))
)
 WITHOUT ROWID;

CREATE TRIGGER idempotency_keys_no_update BEFORE UPDATE ON idempotency_keys BEGIN SELECT RAISE(ABORT, 'idempotency_keys is append-only'); END;

CREATE TRIGGER idempotency_keys_no_delete BEFORE DELETE ON idempotency_keys BEGIN SELECT RAISE(ABORT, 'idempotency_keys is append-only'); END;

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
    trait INTEGER NOT NULL, 
    range_number INTEGER NOT NULL, 
    members BLOB NOT NULL, 
    CONSTRAINT pk_range_traits PRIMARY KEY (trait, range_number)
)
 WITHOUT ROWID;

UPDATE tooltrail_version SET version_num='0005' WHERE tooltrail_version.version_num = '0004';

-- Running upgrade 0005 -> 0006

CREATE TABLE message_documents (
    message_key INTEGER NOT NULL, 
    wire_format TEXT, 
    document_digest TEXT NOT NULL, 
    payload_digest TEXT, 
    CONSTRAINT pk_message_documents PRIMARY KEY (message_key), 
    CONSTRAINT fk_message_documents_message_key FOREIGN KEY(message_key) REFERENCES messages ("key"), 
    CONSTRAINT fk_message_documents_document_digest FOREIGN KEY(document_digest) REFERENCES bodies (digest), 
    CONSTRAINT fk_message_documents_payload_digest FOREIGN KEY(payload_digest) REFERENCES bodies (digest)
);

CREATE TABLE call_origins (
    invocation_key INTEGER NOT NULL, 
    message_key INTEGER NOT NULL, 
    position INTEGER NOT NULL, 
    CONSTRAINT pk_call_origins PRIMARY KEY (invocation_key), 
    CONSTRAINT fk_call_origins_invocation_key FOREIGN KEY(invocation_key) REFERENCES invocations ("key"), 
    CONSTRAINT fk_call_origins_message_key FOREIGN KEY(message_key) REFERENCES messages ("key")
);

CREATE TABLE tool_offers (
    message_key INTEGER NOT NULL, 
    position INTEGER NOT NULL, 
    tool_digest TEXT NOT NULL, 
    CONSTRAINT pk_tool_offers PRIMARY KEY (message_key, position), 
    CONSTRAINT fk_tool_offers_message_key FOREIGN KEY(message_key) REFERENCES messages ("key"), 
    CONSTRAINT fk_tool_offers_tool_digest FOREIGN KEY(tool_digest) REFERENCES tools (digest)
);

CREATE TRIGGER message_documents_no_update BEFORE UPDATE ON message_documents BEGIN SELECT RAISE(ABORT, 'message_documents is append-only'); END;

CREATE TRIGGER message_documents_no_delete BEFORE DELETE ON message_documents BEGIN SELECT RAISE(ABORT, 'message_documents is append-only'); END;

CREATE TRIGGER call_origins_no_update BEFORE UPDATE ON call_origins BEGIN SELECT RAISE(ABORT, 'call_origins is append-only'); END;

CREATE TRIGGER call_origins_no_delete BEFORE DELETE ON call_origins BEGIN SELECT RAISE(ABORT, 'call_origins is append-only'); END;

CREATE TRIGGER tool_offers_no_update BEFORE UPDATE ON tool_offers BEGIN SELECT RAISE(ABORT, 'tool_offers is append-only'); END;

CREATE TRIGGER tool_offers_no_delete BEFORE DELETE ON tool_offers BEGIN SELECT RAISE(ABORT, 'tool_offers is append-only'); END;

UPDATE tooltrail_version SET version_num='0006' WHERE tooltrail_version.version_num = '0005';

-- Running upgrade 0006 -> 0007

CREATE TABLE agent_legs (
    message_key INTEGER NOT NULL, 
    session_key INTEGER NOT NULL, 
    run_id BLOB NOT NULL, 
    position INTEGER NOT NULL, 
    tier TEXT NOT NULL, 
    model TEXT NOT NULL, 
    wire_format TEXT NOT NULL, 
    agent_id TEXT NOT NULL, 
    agent_digest TEXT NOT NULL, 
    schema_digest TEXT, 
    started_at TEXT NOT NULL, 
    document TEXT NOT NULL, 
    CONSTRAINT pk_agent_legs PRIMARY KEY (message_key), 
    CONSTRAINT fk_agent_legs_message_key FOREIGN KEY(message_key) REFERENCES messages ("key"), 
    CONSTRAINT fk_agent_legs_session_key FOREIGN KEY(session_key) REFERENCES sessions ("key"), 
    CONSTRAINT fk_agent_legs_agent_digest FOREIGN KEY(agent_digest) REFERENCES agents (digest)
);

CREATE TABLE agent_outcomes (
    message_key INTEGER NOT NULL, 
    session_key INTEGER NOT NULL, 
    outcome TEXT NOT NULL, 
    escalated_to TEXT, 
    attempt_count INTEGER NOT NULL, 
    duration_ms INTEGER NOT NULL, 
    document TEXT NOT NULL, 
    CONSTRAINT pk_agent_outcomes PRIMARY KEY (message_key), 
    CONSTRAINT fk_agent_outcomes_message_key FOREIGN KEY(message_key) REFERENCES messages ("key"), 
    CONSTRAINT fk_agent_outcomes_session_key FOREIGN KEY(session_key) REFERENCES sessions ("key")
);

CREATE INDEX ix_agent_legs_session_key ON agent_legs (session_key);

CREATE INDEX ix_agent_outcomes_session_key ON agent_outcomes (session_key);

CREATE INDEX ix_agent_legs_agent_id_started_at ON agent_legs (agent_id, started_at);

CREATE INDEX ix_agent_legs_started_at ON agent_legs (started_at);

CREATE TRIGGER agent_legs_no_update BEFORE UPDATE ON agent_legs BEGIN SELECT RAISE(ABORT, 'agent_legs is append-only'); END;

CREATE TRIGGER agent_legs_no_delete BEFORE DELETE ON agent_legs BEGIN SELECT RAISE(ABORT, 'agent_legs is append-only'); END;

CREATE TRIGGER agent_outcomes_no_update BEFORE UPDATE ON agent_outcomes BEGIN SELECT RAISE(ABORT, 'agent_outcomes is append-only'); END;

CREATE TRIGGER agent_outcomes_no_delete BEFORE DELETE ON agent_outcomes BEGIN SELECT RAISE(ABORT, 'agent_outcomes is append-only'); END;

UPDATE tooltrail_version SET version_num='0007' WHERE tooltrail_version.version_num = '0006';

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

DELETE FROM tooltrail_version WHERE tooltrail_version.version_num = '0001';

