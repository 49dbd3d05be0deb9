-- Whether the guest of a task is watched for the whole analysis timeout.
ALTER TABLE task ADD COLUMN enforce_timeout INTEGER NOT NULL DEFAULT 0;
