SELECT (SELECT coalesce(max(id), 0) FROM task), (SELECT coalesce(max(seq), 0) FROM event)
