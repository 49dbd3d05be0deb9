"""libvirt's Python module, loaded when it is first needed, and its event loop: one a process, in a daemon thread that never ends.

libvirt wants its event loop registered before the first connection is opened, and keepalive and events need it to turn for as long as
there is any. Errors that libvirt would print (over the console) are silenced; they are raised as well.
"""

from __future__ import annotations

import importlib
import threading
from functools import cache
from typing import Any

from malbox_tui.model.errors import MalboxError

REMEDY = (
    "Install it with `apt install libvirt-dev pkg-config gcc python3-dev && pip install 'malbox-tui[libvirt]'` "
    "in the environment that malbox-tui runs in."
)

_starting = threading.Lock()


class LibvirtNotInstalled(MalboxError):
    """libvirt-python can't be imported here."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"libvirt-python can't be used ({problem}). {REMEDY}")


@cache
def libvirt_module() -> Any:
    """libvirt-python. Raises `LibvirtNotInstalled`."""
    try:
        return importlib.import_module("libvirt")
    except ImportError as error:
        raise LibvirtNotInstalled(str(error)) from error


@cache
def qemu_module() -> Any:
    """The part of libvirt-python that is for QEMU. Raises `LibvirtNotInstalled`."""
    try:
        return importlib.import_module("libvirt_qemu")
    except ImportError as error:
        raise LibvirtNotInstalled(str(error)) from error


def start_event_loop() -> None:
    """Have libvirt's event loop turn, from now on. Raises `LibvirtNotInstalled`."""
    with _starting:
        _turning_loop()


@cache
def _turning_loop() -> threading.Thread:
    libvirt = libvirt_module()
    libvirt.registerErrorHandler(_say_nothing, None)
    libvirt.virEventRegisterDefaultImpl()
    thread = threading.Thread(target=_turn, args=(libvirt,), daemon=True, name="libvirt-events")
    thread.start()
    return thread


def _turn(libvirt: Any) -> None:
    pause = threading.Event()
    while True:
        try:
            libvirt.virEventRunDefaultImpl()
        except libvirt.libvirtError:
            # It fails when the process has no file descriptors left, say; it is needed as soon as there are some again.
            pause.wait(1.0)


def _say_nothing(context: object, error: object) -> None:
    pass
