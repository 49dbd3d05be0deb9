"""Ways to talk to guests: what runs inside a machine, and may be hostile."""
