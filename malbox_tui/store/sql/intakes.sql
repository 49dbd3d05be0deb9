SELECT id, key, began_at, latest_at, actor, origin, way, title, accepted, duplicates, opened, refused
FROM intake WHERE id < ? ORDER BY id DESC LIMIT ?
