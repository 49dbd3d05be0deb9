-- Which profile a task has and why, in JSON; NULL where there were none.
ALTER TABLE task ADD COLUMN profile TEXT;
