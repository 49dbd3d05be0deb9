"""A process of its own that takes a folder's lock, starts a child that outlives it, prints the child's id, and waits to be killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from malbox_tui.store.folder_lock import FolderLock

if __name__ == "__main__":
    FolderLock(Path(sys.argv[1])).acquire(0.0)
    child = subprocess.Popen(["/bin/sh", "-c", "read line"], stdin=subprocess.PIPE)
    sys.stdout.write(f"{child.pid}\n")
    sys.stdout.flush()
    signal.pause()
