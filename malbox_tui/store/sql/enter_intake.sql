-- The intake of this key, which is begun with its first lines; how many more of each fate there are is added.
INSERT INTO intake (key, began_at, latest_at, actor, origin, way, title, accepted, duplicates, opened, refused)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET
    latest_at = excluded.latest_at, accepted = accepted + excluded.accepted, duplicates = duplicates + excluded.duplicates,
    opened = opened + excluded.opened, refused = refused + excluded.refused
RETURNING id
