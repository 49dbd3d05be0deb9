-- What people noted of a sample, in JSON: notes as they came, and tags in order.
ALTER TABLE sample ADD COLUMN notes TEXT NOT NULL DEFAULT '[]';

ALTER TABLE sample ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
