-- The highest number that a task had which is gone: no number is given twice.
ALTER TABLE engine ADD COLUMN last_task_id INTEGER NOT NULL DEFAULT 0;

-- When the results of a task were removed; NULL while they are kept.
ALTER TABLE task ADD COLUMN results_removed_at REAL;

-- Removing a task asks for those that retry it.
CREATE INDEX task_by_retry ON task (retry_of) WHERE retry_of IS NOT NULL;

-- What was forgotten and may still lie on disk: the results of tasks (a JSON list of ids), and a content where it is not empty.
CREATE TABLE removal (
    number INTEGER PRIMARY KEY,
    sha256 TEXT NOT NULL,
    task_ids TEXT NOT NULL
) STRICT;
