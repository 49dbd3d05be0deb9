-- One row a class and priority, with the ids as a JSON list: a hundred thousand tasks are then a few rows.
SELECT requires, priority, json_group_array(id) FROM task WHERE state = 'pending' GROUP BY requires, priority
