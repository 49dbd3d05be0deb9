DELETE FROM removal WHERE number = ?
