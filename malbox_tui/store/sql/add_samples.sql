INSERT INTO sample (sha256, size_bytes, first_seen_at) VALUES {rows} ON CONFLICT DO NOTHING
