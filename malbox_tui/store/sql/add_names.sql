INSERT INTO sample_name (sha256, name, origin, archive) VALUES {rows} ON CONFLICT DO NOTHING
