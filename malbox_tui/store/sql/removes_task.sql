SELECT EXISTS (SELECT 1 FROM removal, json_each(removal.task_ids) WHERE json_each.value = ?)
