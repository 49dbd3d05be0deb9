-- Those tasks of the JSON list of ids that are pending.
-- (+state keeps SQLite from searching by state, which most tasks share.)
SELECT
    id, sha256, type, requires, priority, timeout_s, state, attempts, crashes, retry_of, worker, token, lease_until,
    created_at, stage_since, started_at, finished_at, stages, outcome, ended_by, reason, verdict, plugins, machine,
    profile, enforce_timeout, run, owner, wishes
FROM task WHERE id IN (SELECT value FROM json_each(?)) AND +state = 'pending'
