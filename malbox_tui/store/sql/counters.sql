SELECT max((SELECT coalesce(max(id), 0) FROM task), (SELECT last_task_id FROM engine)), (SELECT coalesce(max(seq), 0) FROM event)
