"""The pool goes on in a process of its own: `malbox-tui serve` without a terminal, in a session that ends with no other."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time

from malbox_tui.cli.options import GlobalOptions
from malbox_tui.cli.text import sentence
from malbox_tui.config.loading import shown_path
from malbox_tui.model.errors import MalboxError

START_LIMIT_S = 60.0
OUTPUT_FILE = "serve-output.log"
"""In the log folder: what the process printed, beside its own log."""

_STEP_S = 0.1


def go_on_in_background(options: GlobalOptions) -> str:
    """Start it, wait until it can be asked, and say in a sentence how to come back. Raises `MalboxError` when it doesn't start."""
    output = options.folders.logs / OUTPUT_FILE
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "malbox_tui", *options.arguments(), "serve"],
            stdin=subprocess.DEVNULL,
            stdout=descriptor,
            stderr=descriptor,
            start_new_session=True,
        )
    finally:
        os.close(descriptor)
    deadline = time.monotonic() + START_LIMIT_S
    while not asyncio.run(_answers(options)):
        try:
            process.wait(_STEP_S)
        except subprocess.TimeoutExpired:
            if time.monotonic() < deadline:
                continue
        how = "did not answer in time" if process.returncode is None else f"ended with {process.returncode}"
        raise MalboxError(f"The pool does not go on in the background: the process {how}; {shown_path(output)} says why.")
    back = f"`{options.command()}` comes back to it"
    return sentence(f"The pool goes on in the background (process {process.pid}): {back}, `kill {process.pid}` ends it.")


async def _answers(options: GlobalOptions) -> bool:
    from malbox_tui.remote.client import RemoteClient, SocketWay
    from malbox_tui.runtime import SystemClock

    client = RemoteClient(SocketWay(str(options.folders.control_socket)), SystemClock())
    try:
        await client.health()
    except MalboxError:
        return False
    finally:
        client.close()
    return True
