"""One way to run work on hostile bytes: a framed child process behind walls, with limits.

Plugins, unpacking and identification all use it.
"""
