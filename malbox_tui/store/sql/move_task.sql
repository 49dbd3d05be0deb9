-- Compare and set. A change never shortens a lease: its renewals don't pass through the values that callers hold.
UPDATE task SET
    type = ?4, requires = ?5, priority = ?6, timeout_s = ?7, state = ?8, attempts = ?9, crashes = ?10, worker = ?11, token = ?12,
    lease_until = CASE WHEN ?13 IS NULL THEN NULL ELSE max(?13, coalesce(lease_until, ?13)) END,
    stage_since = ?14, started_at = ?15, finished_at = ?16, stages = ?17, outcome = ?18, ended_by = ?19, reason = ?20,
    verdict = ?21, plugins = ?22, machine = ?23
WHERE id = ?1 AND state = ?2 AND token IS ?3
