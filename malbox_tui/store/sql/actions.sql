SELECT number, at, actor, origin, action, done, message, done_to FROM action WHERE number < ? ORDER BY number DESC LIMIT ?
