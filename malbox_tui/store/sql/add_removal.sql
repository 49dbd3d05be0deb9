INSERT INTO removal (sha256, task_ids) VALUES (?, ?) RETURNING number
