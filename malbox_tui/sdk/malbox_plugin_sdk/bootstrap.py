"""The first code in a confined process: `python -m malbox_plugin_sdk.bootstrap SETTINGS ENTRY`.

It limits the process, says hello on the wire, waits until the engine lets it in, and runs the entry script as `__main__`. Nothing of
the entry script runs before the limits stand and the engine has seen that this is the right interpreter.

SETTINGS is a JSON object: `limits` maps names of `resource` limits to numbers; `nice` is added to the niceness; `processors` are those
that it may run on, all if there are none; `parent` (where no sandbox does it) is the id of the process that this one must not outlive.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import runpy
import signal
import socket
import sys
from typing import Any

from .wire import FD_VARIABLE, PROTOCOL, Wire, WireClosed, WireError

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
"""linux/prctl.h"""


def main(arguments: list[str]) -> None:
    """Never returns to its caller's work: the process ends when the entry script does."""
    settings, entry = json.loads(arguments[0]), arguments[1]
    if parent := settings.get("parent"):
        _tie_to(parent)
    os.nice(settings.get("nice", 0))
    if processors := settings.get("processors"):
        os.sched_setaffinity(0, processors)
    _limit(settings["limits"])
    fd = int(os.environ[FD_VARIABLE])
    if not _let_in(fd):
        sys.exit(0)
    os.set_inheritable(fd, False)
    sys.argv = [entry]
    sys.path.insert(0, os.path.dirname(entry))  # noqa: PTH120 - as the interpreter itself does for a script
    runpy.run_path(entry, run_name="__main__")


def _let_in(fd: int) -> bool:
    connection = socket.socket(fileno=fd)
    try:
        wire = Wire(connection)
        wire.send(
            {
                "kind": "hello",
                "protocol": PROTOCOL,
                "prefix": sys.prefix,
                "version": ".".join(map(str, sys.version_info[:3])),
                "uid": os.getuid(),
            }
        )
        header, _payload = wire.receive()
        return bool(header["kind"] == "enter")
    except (WireClosed, WireError):
        return False
    finally:
        connection.detach()


def _tie_to(parent: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for option, value in ((_PR_SET_PDEATHSIG, signal.SIGKILL), (_PR_SET_NO_NEW_PRIVS, 1)):
        if libc.prctl(option, value, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "prctl")
    if os.getppid() != parent:
        sys.exit(0)


def _limit(limits: dict[str, Any]) -> None:
    for name, value in limits.items():
        number = getattr(resource, name)
        _soft, hard = resource.getrlimit(number)
        wanted = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (wanted, wanted))


if __name__ == "__main__":
    main(sys.argv[1:])
