-- What came in together: who handed it in, how, and how many lines of each fate it had.
CREATE TABLE intake (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    began_at REAL NOT NULL,
    latest_at REAL NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    way TEXT NOT NULL,
    title TEXT NOT NULL,
    accepted INTEGER NOT NULL,
    duplicates INTEGER NOT NULL,
    opened INTEGER NOT NULL,
    refused INTEGER NOT NULL
) STRICT;

-- What became of each thing that came in. Of a member, archive is the SHA-256 of the archive that it was in.
CREATE TABLE intake_line (
    number INTEGER PRIMARY KEY,
    intake INTEGER NOT NULL,
    at REAL NOT NULL,
    fate TEXT NOT NULL,
    name BLOB NOT NULL,
    origin BLOB NOT NULL,
    archive TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    size_bytes INTEGER,
    task_id INTEGER,
    code TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;

CREATE INDEX intake_line_by_intake ON intake_line (intake, number);

-- The archive that a content came in under a name; a name without one has an empty text. (A table keeps the uniqueness it was made with.)
CREATE TABLE named (
    id INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES sample (sha256),
    name BLOB NOT NULL,
    origin BLOB NOT NULL,
    archive TEXT NOT NULL DEFAULT '',
    UNIQUE (sha256, name, origin, archive)
) STRICT;

INSERT INTO named (id, sha256, name, origin) SELECT id, sha256, name, origin FROM sample_name;

DROP TABLE sample_name;

ALTER TABLE named RENAME TO sample_name;

CREATE INDEX sample_name_by_archive ON sample_name (archive, sha256) WHERE archive <> '';
