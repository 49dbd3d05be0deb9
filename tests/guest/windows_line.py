"""A Windows guest played in this process: scripts are known by their skeletons, and done over real folders and processes of this host.

What is shown by it is how the conversation deals with such a guest, and not that PowerShell does what the scripts say.
"""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from malbox_tui.guest.windows import Windows
from malbox_tui.model.errors import GuestRefused
from tests.guest.agent_line import PlayedGuest, kill_process
from tests.guest.powershell import taken_apart, words_of

HOLDER = """
import pathlib, psutil, subprocess, sys
base, folder, *argv = sys.argv[1:]
def left(end, text):
    pathlib.Path(base + end).write_text(text)
left(".code", "pending")
with open(base + ".out", "wb") as out, open(base + ".err", "wb") as err:
    program = subprocess.Popen(argv, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
left(".pid", f"{program.pid} {int(psutil.Process(program.pid).create_time() * 1000)}\\n")
code = program.wait()
left(".code", str(code))
sys.exit(code & 255)
"""


class PlayedWindows(PlayedGuest):
    """As `PlayedGuest`, with paths of Windows: its drive is `root`."""

    def __init__(self, root: Path) -> None:
        self.boots = 7
        self._writing: dict[int, Path] = {}
        super().__init__(root)
        self.machine = msgspec.structs.replace(self.machine, platform="windows", folder="C:\\tmp", disk_folder="C:\\disk")
        system = Windows()
        self._scripts: dict[str, Callable[..., dict[str, Any]]] = {
            _skeleton(system.boot("x")): self._tell_boot,
            _skeleton(system.run("x", "x", (), ("x",))): self._run,
            _skeleton(system.run("x", "x", (), ("x", "x"))): self._run,
            _skeleton(system.list("x", "x", "x", 1)): self._list,
            _skeleton(system.processes("x", "x", 4096)): self._tell_processes,
            _skeleton(system.look("x", ["x"], "x", 1, 1)): self._tell_both,
        }

    def here(self, path: str) -> Path:
        """Where a path of the guest lies on this host."""
        assert path.startswith("C:\\"), path
        return self.root / path.removeprefix("C:\\").replace("\\", "/")

    def reboot(self) -> None:
        self.boots += 1
        self._writing.clear()
        kept = {path.name: path.read_bytes() for path in (self.root / "tmp").iterdir()}
        super().reboot()
        for name, content in kept.items():
            (self.root / "tmp" / name).write_bytes(content)

    def _file_open(self, path: str, mode: str) -> int:
        # FILE_SHARE_READ: a file that is open for writing can't be opened again.
        if self.here(path) in self._writing.values():
            raise GuestRefused(self.machine.name, f"failed to open file '{path}': it is being used by another process.")
        handle = super()._file_open(str(self.here(path)), mode)
        if mode != "rb":
            self._writing[handle] = self.here(path)
        return handle

    def _file_close(self, handle: int) -> dict[str, Any]:
        self._writing.pop(handle, None)
        return super()._file_close(handle)

    def _file_read(self, handle: int, count: int) -> dict[str, Any]:
        told = super()._file_read(handle, count)
        return {**told, "eof": not told["count"]}

    def restart_agent(self) -> None:
        self._writing.clear()
        super().restart_agent()

    def _exec(self, path: str, arg: list[str]) -> dict[str, Any]:
        if path.endswith("taskkill.exe"):
            for pid in arg[2::2]:
                kill_process(int(pid))
            return self._nothing_more()
        return self._scripts[_skeleton(arg)](*taken_apart(arg[-1])[1][2:])

    def _nothing_more(self) -> dict[str, Any]:
        return super()._exec("/bin/true", [])

    def _tell_boot(self, told: str, _key: str) -> dict[str, Any]:
        self.here(told).write_text(str(self.boots))
        return self._nothing_more()

    def _run(self, base: str, program: str, *line_and_folder: str) -> dict[str, Any]:
        *line, folder = line_and_folder
        argv = [str(self.here(program)), *words_of("".join(line))]
        return super()._exec(sys.executable, ["-c", HOLDER, str(self.here(base)), str(self.here(folder)), *argv])

    def _list(self, told: str, folder: str, word: str) -> dict[str, Any]:
        lines = [":\r\n"]
        lines += [
            f"{path.stat().st_size} {int(path.stat().st_mtime)} {_encoded(self._path_of(path))}\r\n"
            for path in sorted(self.here(folder).rglob("*"))
            if path.is_file() and not path.name.startswith(word)
        ]
        self.here(told).write_text("".join(lines))
        return self._nothing_more()

    def _tell_processes(self, told: str, *_spaces: str) -> dict[str, Any]:
        lines = []
        for process in psutil.process_iter(["pid", "ppid", "create_time", "name", "cmdline"]):
            began, command = int(process.info["create_time"] * 1000), " ".join(process.info["cmdline"] or ())
            words = process.info["pid"], process.info["ppid"], began, _encoded(process.info["name"]), _encoded(command)
            lines.append(" ".join(map(str, words)) + "\r\n")
        self.here(told).write_text("".join(lines))
        return self._nothing_more()

    def _tell_both(self, files: str, folder: str, word: str, told: str, *_spaces: str) -> dict[str, Any]:
        self._list(files, folder, word)
        return self._tell_processes(told)

    def _path_of(self, path: Path) -> str:
        return "C:\\" + str(path.relative_to(self.root)).replace("/", "\\")


def _skeleton(argv: Sequence[str]) -> str:
    """Whatever the limits are that it names."""
    return re.sub(r"\d+", "0", taken_apart(argv[-1])[0])


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode("utf-8", "replace")).decode()
