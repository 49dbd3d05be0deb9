DELETE FROM removal
