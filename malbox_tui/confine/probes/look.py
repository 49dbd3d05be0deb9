"""Runs confined: tells which files of the host it can see that it must not."""

import os
import socket
from pathlib import Path

from malbox_plugin_sdk.wire import FD_VARIABLE, Wire  # type: ignore[import-not-found]

with socket.socket(fileno=int(os.environ[FD_VARIABLE])) as connection:
    suspects = ["/etc/shadow", "/etc/passwd", os.environ["MALBOX_CANARY"]]
    Wire(connection).send({"kind": "seen", "host_files": [path for path in suspects if Path(path).exists()]})
    connection.recv(1)
