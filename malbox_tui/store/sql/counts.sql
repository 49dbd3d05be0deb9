SELECT state, count(*) FROM task GROUP BY state
