SELECT number, sha256, task_ids FROM removal ORDER BY number LIMIT 1000
