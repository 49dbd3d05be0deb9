"""Reports as people take them along: read from a task's results, brought into one form, and written in others."""
