CREATE INDEX ix_cohorts_content_hash ON cohorts (content_hash);
CREATE INDEX ix_evidence_cohort_hash ON evidence (cohort_hash);
CREATE INDEX ix_jobs_owner_created_at ON jobs (owner, created_at);
CREATE INDEX ix_jobs_state ON jobs (state);
CREATE INDEX ix_step_throughs_owner_updated_at ON step_throughs (owner, updated_at);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE audit (
	sequence INTEGER NOT NULL, 
	event_id VARCHAR(36) NOT NULL, 
	kind VARCHAR(64) NOT NULL, 
	recorded_at VARCHAR(27) NOT NULL, 
	payload TEXT NOT NULL, 
	previous_hash VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (sequence)
);
CREATE TABLE cohort_data (
	cohort_id VARCHAR(36) NOT NULL, 
	sha256 VARCHAR(64) NOT NULL, 
	parquet BLOB NOT NULL, 
	CONSTRAINT pk_cohort_data PRIMARY KEY (cohort_id), 
	CONSTRAINT fk_cohort_data_cohort_id FOREIGN KEY(cohort_id) REFERENCES cohorts (id)
);
CREATE TABLE cohorts (
	id VARCHAR(36) NOT NULL, 
	owner VARCHAR(200) NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	version INTEGER NOT NULL, 
	content_hash VARCHAR(64) NOT NULL, 
	schema_yaml TEXT NOT NULL, 
	shared BOOLEAN NOT NULL, 
	size INTEGER NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	deleted_at VARCHAR(27), 
	CONSTRAINT pk_cohorts PRIMARY KEY (id), 
	CONSTRAINT uq_cohorts_owner_name_version UNIQUE (owner, name, version)
);
CREATE TABLE events (
	step_through_id VARCHAR(36) NOT NULL, 
	sequence INTEGER NOT NULL, 
	event_id VARCHAR(36) NOT NULL, 
	kind VARCHAR(64) NOT NULL, 
	recorded_at VARCHAR(27) NOT NULL, 
	payload TEXT NOT NULL, 
	previous_hash VARCHAR(64) NOT NULL, 
	hash VARCHAR(64) NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (step_through_id, sequence), 
	CONSTRAINT fk_events_step_through_id FOREIGN KEY(step_through_id) REFERENCES step_throughs (id), 
	CONSTRAINT uq_events_step_through_id_event_id UNIQUE (step_through_id, event_id)
);
CREATE TABLE evidence (
	id VARCHAR(36) NOT NULL, 
	owner VARCHAR(200) NOT NULL, 
	cohort_hash VARCHAR(64) NOT NULL, 
	model_fingerprint VARCHAR(200) NOT NULL, 
	settings_hash VARCHAR(64) NOT NULL, 
	settings TEXT NOT NULL, 
	results TEXT NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	CONSTRAINT pk_evidence PRIMARY KEY (id), 
	CONSTRAINT uq_evidence_owner_cohort_hash_model_fingerprint_settings_hash UNIQUE (owner, cohort_hash, model_fingerprint, settings_hash)
);
CREATE TABLE jobs (
	id VARCHAR(36) NOT NULL, 
	owner VARCHAR(200) NOT NULL, 
	kind VARCHAR(64) NOT NULL, 
	config TEXT NOT NULL, 
	state VARCHAR(20) NOT NULL, 
	progress DOUBLE NOT NULL, 
	message TEXT NOT NULL, 
	log_path TEXT NOT NULL, 
	pid INTEGER, 
	process TEXT, 
	claim VARCHAR(36), 
	cancel_requested BOOLEAN NOT NULL, 
	attempts INTEGER NOT NULL, 
	result TEXT, 
	created_at VARCHAR(27) NOT NULL, 
	queued_at VARCHAR(27) NOT NULL, 
	started_at VARCHAR(27), 
	heartbeat_at VARCHAR(27), 
	finished_at VARCHAR(27), 
	CONSTRAINT pk_jobs PRIMARY KEY (id)
);
CREATE TABLE models (
	id VARCHAR(36) NOT NULL, 
	owner VARCHAR(200) NOT NULL, 
	name VARCHAR(200) NOT NULL, 
	fingerprint VARCHAR(200) NOT NULL, 
	folder TEXT NOT NULL, 
	card TEXT NOT NULL, 
	shared BOOLEAN NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	CONSTRAINT pk_models PRIMARY KEY (id), 
	CONSTRAINT uq_models_owner_fingerprint UNIQUE (owner, fingerprint)
);
CREATE TABLE step_throughs (
	id VARCHAR(36) NOT NULL, 
	owner VARCHAR(200) NOT NULL, 
	cohort_id VARCHAR(36) NOT NULL, 
	cohort_hash VARCHAR(64) NOT NULL, 
	model_fingerprint VARCHAR(200) NOT NULL, 
	title VARCHAR(200) NOT NULL, 
	status VARCHAR(20) NOT NULL, 
	length INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	head_hash VARCHAR(64) NOT NULL, 
	created_at VARCHAR(27) NOT NULL, 
	updated_at VARCHAR(27) NOT NULL, deleted_at VARCHAR(27), link_hashes TEXT, 
	CONSTRAINT pk_step_throughs PRIMARY KEY (id), 
	CONSTRAINT fk_step_throughs_cohort_id FOREIGN KEY(cohort_id) REFERENCES cohorts (id)
);
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit WHEN EXISTS (SELECT 1 FROM audit WHERE (sequence = NEW.sequence OR event_id = NEW.event_id)) BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'audit is append-only'); END;
CREATE TRIGGER events_no_delete BEFORE DELETE ON events WHEN NOT EXISTS (SELECT 1 FROM step_throughs WHERE id = OLD.step_through_id AND deleted_at IS NOT NULL) BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
CREATE TRIGGER events_no_replace BEFORE INSERT ON events WHEN EXISTS (SELECT 1 FROM events WHERE step_through_id = NEW.step_through_id AND (sequence = NEW.sequence OR event_id = NEW.event_id)) BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
CREATE TRIGGER events_no_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
