-- (+state keeps SQLite from searching by state, which most tasks share.)
-- Of each content in the JSON list: its latest task that is pending or owned, and its latest completed one.
SELECT
    id, sha256, type, requires, priority, timeout_s, state, attempts, crashes, retry_of, worker, token, lease_until,
    created_at, stage_since, started_at, finished_at, stages, outcome, ended_by, reason, verdict, plugins, machine,
    profile, enforce_timeout, run, owner, wishes
FROM task WHERE id IN (
    SELECT max(id) FROM task
    WHERE sha256 IN (SELECT value FROM json_each(?))
        AND +state IN ('pending', 'initializing', 'preparing_resources', 'running', 'stopping', 'completed')
    GROUP BY sha256, state = 'completed'
)
