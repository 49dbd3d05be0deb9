SELECT notes, tags FROM sample WHERE sha256 = ?1
