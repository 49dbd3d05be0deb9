-- How the sample of a task is run in its guest; what is as usual is left out.
ALTER TABLE task ADD COLUMN run TEXT NOT NULL DEFAULT '{}';
