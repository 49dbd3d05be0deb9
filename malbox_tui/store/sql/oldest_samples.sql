-- Samples all of whose tasks have ended, the last of them before a time, the oldest first.
SELECT sha256, max(id), max(finished_at) AS ended_at FROM task
GROUP BY sha256
HAVING count(*) = count(finished_at) AND ended_at < ?
ORDER BY ended_at, sha256 LIMIT ?
