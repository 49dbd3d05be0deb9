SELECT state IN ('initializing', 'preparing_resources', 'running', 'stopping'), results_removed_at IS NOT NULL, plugins
FROM task WHERE id = ?
