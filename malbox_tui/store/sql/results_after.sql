-- The plugins of tasks that refer to results which are kept; those of a task that is stopping stand in its outcome.
SELECT id, coalesce(json_extract(outcome, '$.plugins'), plugins) FROM task
WHERE id > ? AND results_removed_at IS NULL
    AND state NOT IN ('pending', 'initializing', 'preparing_resources', 'running')
ORDER BY id LIMIT ?
