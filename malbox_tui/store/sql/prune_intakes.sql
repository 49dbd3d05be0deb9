DELETE FROM intake WHERE id <= (SELECT max(id) FROM intake) - ?
