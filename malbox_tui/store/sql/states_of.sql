SELECT id, state FROM task WHERE sha256 = ? ORDER BY id
