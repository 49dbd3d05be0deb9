"""A process of its own that takes a folder's lock, starts a child that prints its own id, and waits to be killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from malbox_tui.store.folder_lock import FolderLock

if __name__ == "__main__":
    FolderLock(Path(sys.argv[1])).acquire(0.0)
    subprocess.Popen(["/bin/sh", "-c", "echo $$; read line"], stdin=subprocess.PIPE)
    signal.pause()
