-- Compare and set, a row a task. A change never shortens a lease: its renewals don't pass through the values that callers hold.
WITH move (
    id, from_state, from_token,
    type, requires, priority, timeout_s, state, attempts, crashes, worker, token, lease_until, stage_since, started_at, finished_at,
    stages, outcome, ended_by, reason, verdict, plugins, machine, profile, enforce_timeout
) AS (VALUES {rows})
UPDATE task SET
    type = move.type, requires = move.requires, priority = move.priority, timeout_s = move.timeout_s, state = move.state,
    attempts = move.attempts, crashes = move.crashes, worker = move.worker, token = move.token,
    lease_until = CASE
        WHEN move.lease_until IS NULL THEN NULL
        ELSE max(move.lease_until, coalesce(task.lease_until, move.lease_until))
    END,
    stage_since = move.stage_since, started_at = move.started_at, finished_at = move.finished_at, stages = move.stages,
    outcome = move.outcome, ended_by = move.ended_by, reason = move.reason, verdict = move.verdict, plugins = move.plugins,
    machine = move.machine, profile = move.profile, enforce_timeout = move.enforce_timeout
FROM move
WHERE task.id = move.id AND task.state = move.from_state AND task.token IS move.from_token
