-- Where a window begins that has one task in its middle; as asked when that task doesn't match.
coalesce((
    SELECT max(0, place - 1 - :limit / 2)
    FROM (SELECT task.id AS id, row_number() OVER (ORDER BY {order}) AS place FROM task WHERE {where})
    WHERE id = :around
), :offset)
