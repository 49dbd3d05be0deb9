-- The machine that serves a task, or served the attempt that ended it.
ALTER TABLE task ADD COLUMN machine TEXT;
