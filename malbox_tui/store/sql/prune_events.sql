DELETE FROM event WHERE seq <= (SELECT max(seq) FROM event) - ?
