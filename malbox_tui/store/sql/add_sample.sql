INSERT INTO sample (sha256, size_bytes, first_seen_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING
