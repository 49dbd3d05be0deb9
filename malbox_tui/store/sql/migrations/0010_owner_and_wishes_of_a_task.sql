-- Who a task belongs to (empty: nobody), and what is asked of its plugins, in JSON.
ALTER TABLE task ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE task ADD COLUMN wishes TEXT NOT NULL DEFAULT '{}';
CREATE INDEX task_by_owner ON task (owner) WHERE owner <> '';
