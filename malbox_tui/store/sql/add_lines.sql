INSERT INTO intake_line (intake, at, fate, name, origin, archive, sha256, size_bytes, task_id, code, reason) VALUES {rows}
