-- Of each content in the JSON list: its latest task, whatever became of it.
SELECT
    id, sha256, type, requires, priority, timeout_s, state, attempts, crashes, retry_of, worker, token, lease_until,
    created_at, stage_since, started_at, finished_at, stages, outcome, ended_by, reason, verdict, plugins, machine,
    profile, enforce_timeout, run, owner, wishes
FROM task WHERE id IN (SELECT max(id) FROM task WHERE sha256 IN (SELECT value FROM json_each(?)) GROUP BY sha256)
