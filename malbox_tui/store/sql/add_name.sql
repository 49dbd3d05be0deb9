INSERT INTO sample_name (sha256, name, origin) VALUES (?, ?, ?) ON CONFLICT DO NOTHING
