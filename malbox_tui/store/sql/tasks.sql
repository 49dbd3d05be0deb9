-- A window of tasks with their samples, and how many match, of one moment. With an empty window there is one row of NULLs.
WITH
total AS (SELECT count(*) AS matching, {offset} AS first FROM task WHERE {where}),
page AS (SELECT task.id AS page_id FROM task WHERE {where} ORDER BY {order} LIMIT :limit OFFSET (SELECT first FROM total))
SELECT
    total.matching, total.first,
    task.id, task.sha256, task.type, task.requires, task.priority, task.timeout_s, task.state, task.attempts, task.crashes,
    task.retry_of, task.worker, task.token, task.lease_until, task.created_at, task.stage_since, task.started_at,
    task.finished_at, task.stages, task.outcome, task.ended_by, task.reason, task.verdict, task.plugins, task.machine,
    task.profile, task.enforce_timeout, task.run, task.owner, task.wishes,
    sample.size_bytes, sample.first_seen_at, sample.identification, sample.notes, sample.tags,
    (
        SELECT json_group_array(json_array(id, hex(name), hex(origin), archive))
        FROM sample_name WHERE sample_name.sha256 = task.sha256
    ),
    task.results_removed_at
FROM total
LEFT JOIN page ON true
LEFT JOIN task ON task.id = page.page_id
LEFT JOIN sample ON sample.sha256 = task.sha256
ORDER BY {order}
