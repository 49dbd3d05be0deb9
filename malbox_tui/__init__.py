"""malbox-tui: a terminal console that runs a pool of malware-analysis workers."""
