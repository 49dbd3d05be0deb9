UPDATE task SET results_removed_at = coalesce(finished_at, created_at) WHERE id = ?
