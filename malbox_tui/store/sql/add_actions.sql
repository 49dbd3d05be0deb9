INSERT INTO action (number, at, actor, origin, action, done, message, done_to) VALUES {rows}
