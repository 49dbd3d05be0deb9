UPDATE sample SET notes = ?2, tags = ?3 WHERE sha256 = ?1
