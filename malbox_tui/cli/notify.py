"""What a service manager is told: that the service is ready, reloads, stops, how it is, and that it lives.

The protocol is datagrams of `NAME=value` lines to the socket that `NOTIFY_SOCKET` names (sd_notify(3)); without one, nothing is sent.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Notifier:
    """Tells the manager at `address` (empty: there is none). It wants to hear `alive` every `watchdog_s` seconds; None: it doesn't."""

    address: str = ""
    watchdog_s: float | None = None

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> Notifier:
        """As the manager says in the environment that it starts the service with."""
        address = environment.get("NOTIFY_SOCKET", "")
        usec = environment.get("WATCHDOG_USEC", "")
        watched = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        return cls(address, int(usec) / 1e6 if usec.isascii() and usec.isdigit() and int(usec) and watched else None)

    def ready(self, status: str) -> None:
        """It serves: for the first time, or again after `reloading`."""
        self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """It reads its configuration again; `ready` follows."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str, within_s: float) -> None:
        """It ends, and may take so long to."""
        self._send("STOPPING=1", f"STATUS={status}", f"EXTEND_TIMEOUT_USEC={int(within_s * 1e6)}")

    def alive(self, status: str) -> None:
        """Its engine answers."""
        self._send("WATCHDOG=1", f"STATUS={status}")

    def _send(self, *lines: str) -> None:
        if not self.address:
            return
        # A leading @ stands for the zero byte of an abstract name (unix(7)).
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.setblocking(False)
            channel.sendto("\n".join(lines).encode(), address)
