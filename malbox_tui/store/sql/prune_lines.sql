DELETE FROM intake_line WHERE number <= (SELECT max(number) FROM intake_line) - ?
