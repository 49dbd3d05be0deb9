SELECT (SELECT id FROM engine), epoch, seq, at, body FROM event ORDER BY seq DESC LIMIT ?
