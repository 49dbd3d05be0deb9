SELECT EXISTS (SELECT 1 FROM task WHERE id = ? AND results_removed_at IS NULL)
