"""An engine served over a Unix socket, and the client of one. Both speak HTTP with JSON; `protocol` is what they agree on."""
