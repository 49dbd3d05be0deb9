-- What people did: a row for each event ActionTaken, under its number, kept when the event is dropped.
CREATE TABLE action (
    number INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    actor TEXT NOT NULL,
    origin TEXT NOT NULL,
    action TEXT NOT NULL,
    done INTEGER NOT NULL,
    message TEXT NOT NULL,
    done_to TEXT NOT NULL
) STRICT;
