UPDATE engine SET last_task_id = max(last_task_id, ?)
