"""Unpacks hostile archives in a confined process.

Each format has a module with a function `unpack(file, outlet)`. It hands every entry to the outlet, in the archive's order, and never
uses a name for anything else. It raises `BrokenArchive` when it can't go on; what the outlet raises passes through it.

Nothing here imports anything of the engine: modules import each other relatively, so that they work under both of their names.
"""
