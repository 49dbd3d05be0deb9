"""Runs confined: unpacks archives as it is ordered over the wire."""

import contextlib
import os
import socket

from malbox_plugin_sdk.wire import FD_VARIABLE, Wire, WireClosed  # type: ignore[import-not-found]
from unpacking.orders import serve  # type: ignore[import-not-found]

with socket.socket(fileno=int(os.environ[FD_VARIABLE])) as connection, contextlib.suppress(WireClosed):
    serve(Wire(connection))
