-- Of the JSON list of ids: those that have ended and whose results were kept until now.
-- (+state keeps SQLite from searching by state, which most tasks share.)
UPDATE task SET results_removed_at = ?2
WHERE id IN (SELECT value FROM json_each(?1)) AND results_removed_at IS NULL
    AND +state NOT IN ('pending', 'initializing', 'preparing_resources', 'running', 'stopping')
RETURNING id
