SELECT (SELECT id FROM engine), epoch, seq, at, body FROM event WHERE seq > ? ORDER BY seq LIMIT ?
