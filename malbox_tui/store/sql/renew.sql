UPDATE task SET lease_until = max(lease_until, ?2) WHERE token IN (SELECT value FROM json_each(?1)) RETURNING token
