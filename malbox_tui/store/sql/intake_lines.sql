-- An intake and a window of its lines, of one moment; the first row is the intake's alone.
SELECT
    0, json_array(key, began_at, latest_at, actor, origin, way, title, accepted, duplicates, opened, refused),
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM intake WHERE id = :intake
UNION ALL
SELECT * FROM (
    SELECT number, fate, at, name, origin, archive, sha256, size_bytes, task_id, code, reason
    FROM intake_line WHERE intake = :intake AND number > :after AND (:fates IS NULL OR fate IN (SELECT value FROM json_each(:fates)))
    ORDER BY number LIMIT :limit
)
