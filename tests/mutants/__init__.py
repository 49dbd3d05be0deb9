"""Faults put into the engine on purpose, each a patch: the tests are worth what they find of them."""
