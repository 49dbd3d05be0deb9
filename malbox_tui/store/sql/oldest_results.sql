-- Tasks that ended before a time and whose results are kept, the oldest first.
SELECT sha256, id, finished_at FROM task WHERE finished_at < ? AND results_removed_at IS NULL ORDER BY finished_at, id LIMIT ?
