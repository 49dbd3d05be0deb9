-- Of each content in the JSON list: the name it came with first.
SELECT sha256, name FROM sample_name WHERE id IN (
    SELECT min(id) FROM sample_name WHERE sha256 IN (SELECT value FROM json_each(?)) GROUP BY sha256
)
