"""The command. Machine-readable output and results go to stdout, everything else to stderr."""
