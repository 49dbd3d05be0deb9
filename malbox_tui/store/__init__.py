"""Where tasks, samples, events and results are kept: SQLite on disk, or memory; the quarantine; the result store."""
