DELETE FROM sample_name WHERE sha256 = ?
