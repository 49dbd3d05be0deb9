"""A guest agent played in this process, over real folders and real processes of this host, that can be made to lie and to fail."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import signal
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from malbox_tui.guest.qga import QgaChannel
from malbox_tui.guest.session import NEEDED
from malbox_tui.machinery.agent import is_repeatable
from malbox_tui.model.errors import GuestLineLost, GuestRefused, GuestUnreachable
from malbox_tui.model.machine import MachineSpec, PowerState

BOOT_FILE = "/proc/sys/kernel/random/boot_id"

COMMANDS = (*NEEDED, "guest-ping", "guest-info", "guest-get-time", "guest-set-time")

Lie = Callable[[dict[str, Any]], str | None]
"""What is answered to a request's arguments instead; None: the truth."""


class PlayedGuest:
    """Implements `AgentLine`. Its guest is two folders below `root`: `tmp`, which a start empties, and `disk`."""

    def __init__(self, root: Path, programs: Path | None = None) -> None:
        self.machine = MachineSpec(
            name="lin-1",
            provider="played",
            platform="linux",
            folder=str(root / "tmp"),
            disk_folder=str(root / "disk"),
        )
        self.root = root
        self.programs = programs
        self.power = PowerState.RUNNING
        self.answers = True
        self.disabled: set[str] = set()
        self.asked: list[str] = []
        self.lies: dict[str, Lie] = {}
        self.losses: dict[int, bool] = {}
        """By their number, requests under which the way to the guest is lost, and whether the guest gets them all the same."""
        self.clock: float | None = None
        self.boot_id = ""
        self._started: list[subprocess.Popen[bytes]] = []
        self._files: dict[int, IO[bytes]] = {}
        for name in ("tmp", "disk"):
            (root / name).mkdir()
        self.reboot()

    def channel(self, rejoin_s: float = 5.0) -> QgaChannel:
        """A way to it."""
        return QgaChannel(self, self._power, rejoin_s)

    async def ask(self, machine: MachineSpec, request: str, limit_s: float) -> str:
        """As `AgentLine.ask`."""
        assert machine == self.machine
        asked = json.loads(request)
        name, arguments = asked["execute"], asked.get("arguments", {})
        self.asked.append(name)
        if (lie := self.lies.get(name)) is not None and (told := lie(arguments)) is not None:
            return told
        if not self.answers or self.power is not PowerState.RUNNING:
            raise GuestUnreachable(self.machine.name, "its agent does not answer")
        if name in self.disabled or name not in COMMANDS:
            raise GuestRefused(self.machine.name, f"Command {name} has been disabled")
        gets_it = self.losses.pop(len(self.asked), None)
        if gets_it is None or is_repeatable(request):
            return json.dumps({"return": self.does(name, arguments)})
        if gets_it:
            self.does(name, arguments)
        raise GuestLineLost(self.machine.name, "the connection to its hypervisor was lost")

    def does(self, name: str, arguments: dict[str, Any]) -> Any:
        """What becomes of a request that it gets. Raises `GuestRefused`."""
        try:
            return getattr(self, "_" + name.removeprefix("guest-").replace("-", "_"))(**arguments)
        except OSError as exc:
            raise GuestRefused(self.machine.name, f"Guest agent command failed, error was '{exc}'") from exc

    def restart_agent(self) -> None:
        """It forgets its files and its programs, which go on."""
        self._close_files()
        self._files = {}
        self._programs: dict[int, subprocess.Popen[bytes]] = {}
        self._last_handle = 1000

    def reboot(self) -> None:
        """All that runs is gone, and what is not on the disk."""
        self.end_all()
        shutil.rmtree(self.root / "tmp")
        (self.root / "tmp").mkdir()
        self.boot_id = f"{uuid.uuid4()}\n"
        self.restart_agent()

    def revert(self) -> None:
        """All that came after the snapshot is gone; the snapshot is of the same start."""
        boot_id = self.boot_id
        self.reboot()
        shutil.rmtree(self.root / "disk")
        (self.root / "disk").mkdir()
        self.boot_id = boot_id

    def programs_running(self) -> list[int]:
        """The processes that were started here, and have not ended."""
        return [program.pid for program in self._started if program.poll() is None]

    def end_all(self) -> None:
        """Kill what was started here, and what that has started as far as it is in sessions of these."""
        for program in self._started:
            for child in _children(program.pid):
                kill_process(child)
            program.kill()
            program.wait()
        self._started.clear()
        self._close_files()

    def _close_files(self) -> None:
        for file in self._files.values():
            file.close()

    async def _power(self, machine: MachineSpec) -> PowerState:
        return self.power

    def _ping(self) -> dict[str, Any]:
        return {}

    def _info(self) -> dict[str, Any]:
        commands = [{"name": name, "enabled": name not in self.disabled, "success-response": True} for name in COMMANDS]
        return {"version": "7.2.22", "supported_commands": commands}

    def _file_open(self, path: str, mode: str) -> int:
        self._last_handle += 1
        file = io.BytesIO(self.boot_id.encode()) if path == BOOT_FILE else Path(path).open(mode)  # noqa: SIM115
        self._files[self._last_handle] = file  # type: ignore[assignment]
        return self._last_handle

    def _file_close(self, handle: int) -> dict[str, Any]:
        self._file(handle).close()
        del self._files[handle]
        return {}

    def _file_seek(self, handle: int, offset: int, whence: int) -> dict[str, Any]:
        return {"position": self._file(handle).seek(offset, whence), "eof": False}

    def _file_read(self, handle: int, count: int) -> dict[str, Any]:
        content = self._file(handle).read(count)
        return {"count": len(content), "buf-b64": base64.b64encode(content).decode(), "eof": len(content) < count}

    def _file_write(self, handle: int, **content: str) -> dict[str, Any]:
        return {"count": self._file(handle).write(base64.b64decode(content["buf-b64"])), "eof": False}

    def _exec(self, path: str, arg: list[str]) -> dict[str, Any]:
        environment = None
        if self.programs is not None:
            path, environment = str(self.programs / Path(path).name), {**os.environ, "PATH": str(self.programs)}
        program = subprocess.Popen(
            [path, *arg],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
        )
        self._programs[program.pid] = program
        self._started.append(program)
        return {"pid": program.pid}

    def _exec_status(self, pid: int) -> dict[str, Any]:
        if pid not in self._programs:
            raise GuestRefused(self.machine.name, "Invalid parameter 'pid'")
        code = self._programs[pid].poll()
        if code is None:
            return {"exited": False}
        del self._programs[pid]
        return {"exited": True, "exitcode": code} if code >= 0 else {"exited": True, "signal": -code}

    def _get_time(self) -> int:
        return int((self.clock or 0.0) * 1e9)

    def _set_time(self, time: int) -> dict[str, Any]:
        self.clock = time / 1e9
        return {}

    def _file(self, handle: int) -> IO[bytes]:
        if handle not in self._files:
            raise GuestRefused(self.machine.name, f"handle '{handle}' has not been found")
        return self._files[handle]


def _children(pid: int) -> list[int]:
    try:
        told = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [child for one in map(int, told.split()) for child in (*_children(one), one)]


def kill_process(pid: int) -> None:
    """One that has ended is left alone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
