"""A way to an engine on another host, through the system's ssh: a Unix socket here that leads to the one there. No port is opened.

1. One ssh a tunnel: it asks for the place of the socket there and stays, and the forwarding is added to it (ssh(1), ControlMaster and
   -O forward). So a person is asked for a password once, before the screen is opened.
2. Its stdin is a pipe that this process holds: when this process ends, however it does, the command there ends, and so does ssh.
3. Opened again, it must not ask: the screen has the terminal then. So it runs in a session of its own, in batch mode.
4. All that it needs lies in a folder for its owner alone, which goes with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import select
import shutil
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec

from malbox_tui.model.errors import EngineMismatch, MalboxError
from malbox_tui.model.sample import visible
from malbox_tui.remote.ssh_target import SshTarget
from malbox_tui.remote.wire import ConnectionLost

log = logging.getLogger(__name__)

OPEN_LIMIT_S = 60.0
"""How long opening it again may take."""
END_LIMIT_S = 2.0
MAX_SAID_BYTES = 64 * 1024
LONGEST_FOLDER = 60
"""Bytes: ssh adds a suffix of its own to the name of its socket, which unix(7) bounds at 108."""
NOT_FOUND, SSH_FAILED = 127, 255

_OPTIONS = (
    "-T",
    *("-o", "ControlMaster=yes"),
    *("-o", "ControlPersist=no"),
    *("-o", "ClearAllForwardings=yes"),
    *("-o", "ForwardAgent=no"),
    *("-o", "ForwardX11=no"),
    *("-o", "PermitLocalCommand=no"),
    *("-o", "RemoteCommand=none"),
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=3"),
)
_WITHOUT_QUESTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=15")


class Whereabouts(msgspec.Struct, frozen=True, kw_only=True):
    """What `malbox-tui where --json` says: the program's version and protocol, the control socket, whether an engine answers there (if
    not, why), and who and where it was asked."""

    malbox: str
    protocol: int
    socket: str
    running: bool
    problem: str = ""
    user: str = ""
    host: str = ""


class Tunnel:
    """To the engine at `target`, where the command is called `program`. `open` it first; `close` leaves nothing behind."""

    def __init__(self, target: SshTarget, program: str = "malbox-tui") -> None:
        self._target = target
        self._program = program
        self._folder: Path | None = None
        self._ssh: subprocess.Popen[bytes] | None = None
        self._number = 0
        self._opening = asyncio.Lock()
        self._guard = threading.Lock()
        """Held to begin an ssh, and to end for good: none is begun after the end, whichever thread is faster."""
        self._is_closed = False
        self.shown = target.shown

    def open(self, *, may_ask: bool = True) -> Whereabouts:
        """Connect, and say what there is. ssh may ask questions on the terminal if it `may_ask`.

        Raises `ConnectionLost` when ssh can't get there, and `MalboxError` when there is nothing to attach to.
        """
        with self._guard:
            if self._is_closed:
                raise ConnectionLost("the tunnel was closed")
            self._end_ssh()
            ssh = self._ssh = self._begin_ssh(may_ask)
        assert ssh.stdout is not None
        with ssh.stdout:  # closed here alone: `close` may come from another thread, and ends what is read
            found = self._read_whereabouts(ssh, ssh.stdout, None if may_ask else OPEN_LIMIT_S)
        if not found.running:
            problem = found.problem or "no engine answers on its socket"
            raise ConnectionLost(f"{visible(found.host) or self.shown} has malbox-tui, but {visible(problem)}")
        self._forward(found.socket)
        return found

    @property
    def is_up(self) -> bool:
        """See `Way`."""
        return self._ssh is not None and self._ssh.poll() is None

    async def reach(self) -> str:
        """See `Way`: opened again when it has ended."""
        async with self._opening:
            if not self.is_up:
                try:
                    await asyncio.to_thread(self.open, may_ask=False)
                except EngineMismatch:
                    raise
                except MalboxError as error:
                    raise ConnectionLost(str(error).rstrip(".")) from error
        return str(self._socket)

    def close(self) -> None:
        """End ssh and remove its folder; from any thread, also while it is being opened. A second call does nothing."""
        with self._guard:
            self._is_closed = True
            self._end_ssh()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    # --- one ssh -----------------------------------------------------------------------------------------------------------------

    @property
    def _control(self) -> Path:
        assert self._folder is not None
        return self._folder / f"c{self._number}"

    @property
    def _socket(self) -> Path:
        assert self._folder is not None
        return self._folder / f"s{self._number}"

    def _begin_ssh(self, may_ask: bool) -> subprocess.Popen[bytes]:
        if self._folder is None:
            self._folder = _private_folder()
        self._number += 1
        options = [*_OPTIONS, "-o", f"ControlPath={self._control}", *(() if may_ask else _WITHOUT_QUESTIONS)]
        with (self._folder / "stderr").open("wb") as said:
            try:
                return subprocess.Popen(
                    ["ssh", *options, *self._target.arguments(), self._target.command(self._program)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    start_new_session=not may_ask,
                )
            except OSError as exc:
                raise MalboxError(f"ssh can't be started: {exc.strerror or exc}. Install OpenSSH's client.") from exc

    def _read_whereabouts(self, ssh: subprocess.Popen[bytes], output: IO[bytes], limit_s: float | None) -> Whereabouts:
        """The first line that is what was asked for: a shell's start-up files may print others. Raises as `open` does."""
        deadline = None if limit_s is None else time.monotonic() + limit_s
        said = b""
        while len(said) < MAX_SAID_BYTES:
            piece = _read_some(output, deadline)
            said += piece
            for line in said.split(b"\n")[:-1]:
                with suppress(msgspec.DecodeError):
                    return msgspec.json.decode(line, type=Whereabouts)
            if not piece:
                break
        raise self._failure(ssh, said)

    def _failure(self, ssh: subprocess.Popen[bytes], said: bytes) -> ConnectionLost | MalboxError:
        """Why there was no answer, from how ssh ended and what it, or the other side, said."""
        if self._is_closed:
            return ConnectionLost("the tunnel was closed")
        try:
            code: int | None = ssh.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            code = None
        why = self._complaint()
        if code == SSH_FAILED:
            return ConnectionLost(f"ssh can't get to {self.shown}{f': {why}' if why else ''}")
        if code == NOT_FOUND:
            return MalboxError(
                f"{self.shown} has no {visible(self._program)}, or its shell doesn't find it. Install it there, or say where it is "
                "with --remote-program."
            )
        if b"has no command" in self._stderr() or "'where'" in why:
            return EngineMismatch(f"The malbox-tui on {self.shown} is older and can't be attached to. Upgrade it there.")
        rest = why or visible(said.decode("utf-8", "replace").strip()[-200:])
        return MalboxError(f"The malbox-tui on {self.shown} did not say where its engine is{f': {rest}' if rest else ''}.")

    def _forward(self, there: str) -> None:
        """Let the socket here lead to the one there. Raises `ConnectionLost`."""
        if ":" in there:
            raise MalboxError(f"ssh can't lead to a socket with a colon in its path: {visible(there)}.")
        command = ["ssh", "-o", f"ControlPath={self._control}", "-o", "StreamLocalBindMask=0177", "-O", "forward"]
        try:
            done = subprocess.run(
                [*command, "-L", f"{self._socket}:{there}", *self._target.arguments()],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=OPEN_LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as exc:
            raise ConnectionLost("ssh did not forward the socket in time") from exc
        if done.returncode or not self._socket.exists():
            why = _last_line(done.stderr) or self._complaint()
            raise ConnectionLost(f"ssh does not forward the socket{f': {why}' if why else ''}")

    def _end_ssh(self) -> None:
        ssh, self._ssh = self._ssh, None
        if ssh is None:
            return
        if ssh.stdin is not None:
            with suppress(OSError):
                ssh.stdin.close()
        ssh.terminate()
        try:
            ssh.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            ssh.kill()
            ssh.wait()

    def _complaint(self) -> str:
        return _last_line(self._stderr())

    def _stderr(self) -> bytes:
        assert self._folder is not None
        try:
            return (self._folder / "stderr").read_bytes()[-MAX_SAID_BYTES:]
        except OSError:
            return b""


def _read_some(output: IO[bytes], deadline: float | None) -> bytes:
    """What comes next, empty at the end. Raises `ConnectionLost` when nothing does until `deadline`."""
    left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
    if not select.select([output], [], [], left_s)[0]:
        raise ConnectionLost("ssh did not get there in time")
    return os.read(output.fileno(), 4096)


def _private_folder() -> Path:
    """A new folder for the owner alone, with a name short enough for sockets in it."""
    places = [os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp"]
    for place in places:
        if place and "%" not in place and len(os.fsencode(place)) <= LONGEST_FOLDER and os.access(place, os.W_OK):
            return Path(tempfile.mkdtemp(prefix="malbox-", dir=place))
    raise MalboxError("There is no folder for the tunnel's socket: make /tmp writable.")


def _last_line(said: bytes) -> str:
    """The last line that says something, safe to show."""
    lines = [line.strip() for line in said.decode("utf-8", "replace").splitlines()]
    kept = [line for line in lines if line and not line.startswith("Warning: Permanently added")]
    return visible(kept[-1][:300]).rstrip(".") if kept else ""
