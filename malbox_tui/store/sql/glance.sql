SELECT id FROM task WHERE +state IN ({states}) AND CAST(id AS TEXT) GLOB ? ORDER BY id DESC LIMIT ?
