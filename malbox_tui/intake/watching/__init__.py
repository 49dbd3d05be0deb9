"""Folders whose files become tasks as they come: looking, settling, taking, and what becomes of the files afterwards."""
