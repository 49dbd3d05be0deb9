INSERT INTO sample_name (sha256, name, origin) VALUES {rows} ON CONFLICT DO NOTHING
