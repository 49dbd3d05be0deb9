"""A machine's memory as a file, dumped by libvirt. Runs in threads, with an open connection.

libvirt wants a path. It gets that of a named pipe, so that neither who it runs as nor who reads it matters; what comes out of the pipe
is written into a file of ours. The pipe lies beside the file where libvirt can reach it, else in a folder for temporary files.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from malbox_tui.machinery.binding import libvirt_module
from malbox_tui.machinery.domains import find_domain
from malbox_tui.machinery.drain import Drain, new_file, write_all
from malbox_tui.machinery.line import is_alive
from malbox_tui.machinery.place import is_local, is_test
from malbox_tui.machinery.refusals import CANT, Code, Refusal, refusal_of
from malbox_tui.model.errors import MachineError, MachineUnable
from malbox_tui.model.machine import MachineSpec

ROOM_BYTES = 256 * 1024**2
"""A dump may be so much larger than the memory: it holds that of devices too."""
REST_S = 60.0
"""How long what is in the pipe may take to be written when libvirt says that it is done."""


def dump(connection: Any, machine: MachineSpec, target: Path, given_up: threading.Event) -> None:
    """As `MachineProvider.dump_memory`; when `given_up` is set, it fails soon."""
    libvirt = libvirt_module()
    if not is_local(machine.uri):
        raise MachineUnable(machine.name, f"its memory can't be dumped to this host: it runs on {machine.uri}")
    domain = find_domain(connection, machine)
    max_bytes = domain.maxMemory() * 1024 + ROOM_BYTES
    flags = 0 if is_test(machine.uri) else libvirt.VIR_DUMP_MEMORY_ONLY
    try:
        file = new_file(target)
    except OSError as error:
        raise MachineError(machine.name, f"its memory can't be dumped: {error}") from None
    try:
        _dump_somewhere(connection, domain, machine, flags, Sink(file, max_bytes, given_up), target)
    except BaseException:
        target.unlink(missing_ok=True)
        raise
    finally:
        os.close(file)


class Sink:
    """The file that a dump is written into, and how much of it may come."""

    def __init__(self, fd: int, max_bytes: int, given_up: threading.Event) -> None:
        self._fd = fd
        self._max_bytes = max_bytes
        self._given_up = given_up
        self.written = 0

    def take(self, piece: bytes) -> bool:
        """Raises `OSError`."""
        if self._given_up.is_set() or self.written + len(piece) > self._max_bytes:
            return False
        write_all(self._fd, piece)
        self.written += len(piece)
        return True


def _dump_somewhere(connection: Any, domain: Any, machine: MachineSpec, flags: int, sink: Sink, target: Path) -> None:
    libvirt = libvirt_module()
    refusal: Refusal | None = None
    for folder in (_beside(target), _elsewhere()):
        with folder as fifo:
            try:
                _dump_through(domain, fifo, flags, sink)
                return
            except libvirt.libvirtError as error:
                if not is_alive(connection) or error.get_error_code() in CANT:
                    raise
                refusal = refusal_of(error)
            except OSError as error:
                raise MachineError(machine.name, f"its memory could not be dumped: {error}") from None
        if sink.written or refusal.code == Code.OPERATION_INVALID:
            break
    raise MachineError(machine.name, f"its memory could not be dumped: {refusal.words if refusal else 'nothing came'}")


def _dump_through(domain: Any, fifo: Path, flags: int, sink: Sink) -> None:
    """Raises `OSError`, and libvirt's errors."""
    libvirt = libvirt_module()
    read_end = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    # Held open, or the reader would see an end before the beginning.
    write_end = os.open(fifo, os.O_WRONLY | os.O_CLOEXEC)
    drain = Drain(read_end, sink.take)
    try:
        try:
            domain.coreDumpWithFormat(str(fifo), libvirt.VIR_DOMAIN_CORE_DUMP_FORMAT_RAW, flags)
        except libvirt.libvirtError:
            if drain.error is not None:
                raise drain.error from None
            raise
    finally:
        os.close(write_end)
    if not drain.join(REST_S):
        drain.give_up()
        raise OSError("what was dumped did not arrive")
    if drain.error is not None:
        raise drain.error
    if drain.is_cut:
        raise OSError("it is larger than a machine's memory can be")


@contextmanager
def _beside(target: Path) -> Iterator[Path]:
    with _fifo(target.parent) as fifo:
        yield fifo


@contextmanager
def _elsewhere() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="malbox-") as folder:
        # To be passed through, not to be looked into.
        Path(folder).chmod(0o711)
        with _fifo(Path(folder)) as fifo:
            yield fifo


@contextmanager
def _fifo(folder: Path) -> Iterator[Path]:
    fifo = folder / f".dump-{secrets.token_hex(16)}"
    os.mkfifo(fifo)
    try:
        fifo.chmod(0o622)
        yield fifo
    finally:
        # libvirt removes what it failed to write into.
        with contextlib.suppress(FileNotFoundError):
            fifo.unlink()
