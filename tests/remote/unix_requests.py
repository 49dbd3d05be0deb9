"""`requests` over a Unix socket."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection
from urllib3.connectionpool import HTTPConnectionPool

BASE = "http://engine"


class _Connection(HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("engine")
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))


class _Pool(HTTPConnectionPool):
    def __init__(self, path: Path) -> None:
        super().__init__("engine")
        self._path = path

    def _new_conn(self) -> _Connection:
        return _Connection(self._path)


class _Adapter(HTTPAdapter):
    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path_pool = _Pool(path)

    def get_connection_with_tls_context(self, *_: Any, **__: Any) -> _Pool:
        return self._path_pool

    def close(self) -> None:
        self._path_pool.close()
        super().close()


def unix_session(path: Path, headers: Mapping[str, str] = {}) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.headers.update(headers)
    session.mount(BASE, _Adapter(path))
    return session
