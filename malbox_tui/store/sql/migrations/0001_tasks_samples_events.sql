-- One row: who this store is, and how often it was opened.
CREATE TABLE engine (
    id TEXT NOT NULL,
    epoch INTEGER NOT NULL
) STRICT;

INSERT INTO engine (id, epoch) VALUES (lower(hex(randomblob(16))), 0);

CREATE TABLE sample (
    sha256 TEXT PRIMARY KEY,
    size_bytes INTEGER NOT NULL,
    first_seen_at REAL NOT NULL,
    identification TEXT
) STRICT, WITHOUT ROWID;

-- Names in the order they came, each once.
CREATE TABLE sample_name (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES sample (sha256),
    name BLOB NOT NULL,
    origin BLOB NOT NULL,
    UNIQUE (sha256, name, origin)
) STRICT;

-- The columns are the fields of model.task.Task; what has parts is JSON.
CREATE TABLE task (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES sample (sha256),
    type TEXT NOT NULL,
    requires TEXT NOT NULL,
    priority INTEGER NOT NULL,
    timeout_s REAL NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    retry_of INTEGER REFERENCES task (id) CHECK (retry_of < id),
    worker TEXT,
    token TEXT,
    lease_until REAL,
    created_at REAL NOT NULL,
    stage_since REAL NOT NULL,
    started_at REAL,
    finished_at REAL,
    stages TEXT NOT NULL,
    outcome TEXT,
    ended_by TEXT,
    reason TEXT NOT NULL,
    verdict TEXT,
    plugins TEXT NOT NULL
) STRICT;

CREATE INDEX task_by_state ON task (state, priority DESC, id);

CREATE INDEX task_by_sample ON task (sha256, id);

-- No two attempts own by the same token.
CREATE UNIQUE INDEX task_by_token ON task (token) WHERE token IS NOT NULL;

CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    at REAL NOT NULL,
    body TEXT NOT NULL
) STRICT;
