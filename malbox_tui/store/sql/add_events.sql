INSERT INTO event (seq, epoch, at, body) VALUES {rows}
