UPDATE sample SET identification = ?2 WHERE sha256 = ?1
