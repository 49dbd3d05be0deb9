SELECT count(*), coalesce(sum(size_bytes), 0), min(first_seen_at), (SELECT count(*) FROM removal) FROM sample
