"""The QEMU guest agent of one machine, asked request by request (https://www.qemu.org/docs/master/interop/qemu-ga-ref.html).

Whatever answers may be the sample's and not the agent. So each reply is bounded and checked here: what no agent would say is a guest
that can't be understood any more, a `GuestUnreachable`; what an agent refuses is a `GuestRefused` with its words.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from malbox_tui.guest.pause import pause
from malbox_tui.model.errors import GuestRefused, GuestUnreachable
from malbox_tui.model.machine import MachineSpec
from malbox_tui.ports import AgentLine

ANSWER_S = 10.0
"""How long the agent may think about one request."""

WRITE_BYTES = 64 * 1024
"""What one request writes. Libvirt hangs on requests of 256 KiB and more: they don't fit into its socket's buffer."""

READ_BYTES = 256 * 1024
"""What one request reads at most: more is no faster, and takes longer to be decoded. A reply beyond 4 MiB is refused by libvirt, and
one beyond 10 MiB ends the agent's line for good."""

REQUEST_CHARS = 160 * 1024
REPLY_CHARS = 4 * 1024 * 1024

_IDLE_REPLIES = 20
"""How many times in a row a file may take or give nothing, without an end, before it is given up."""

_IDLE_PAUSE_S = 0.05
_WORDS = 400

_Value = TypeVar("_Value")
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**48)]
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Nanoseconds = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Answer(msgspec.Struct, Generic[_Value]):
    value: _Value = msgspec.field(name="return")


class _Complaint(msgspec.Struct):
    desc: str


class _Refusal(msgspec.Struct):
    error: _Complaint


class _Ability(msgspec.Struct):
    name: str
    enabled: bool


class _Abilities(msgspec.Struct):
    supported_commands: list[_Ability]


class _Written(msgspec.Struct):
    count: _Count


class _Read(msgspec.Struct, rename={"content": "buf-b64"}):
    count: _Count
    eof: bool
    content: str = ""


class _Started(msgspec.Struct):
    pid: Annotated[int, msgspec.Meta(ge=1, le=2**32)]


class ExecStatus(msgspec.Struct, frozen=True):
    """What became of a program: `code` when it exited, `signal` when one killed it; both None for one that runs, or nobody knows."""

    exited: bool
    code: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**32)] | None = msgspec.field(default=None, name="exitcode")
    signal: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**32)] | None = None
    """Windows has no signals: there it is the status of one that ended with an error's."""


class Agent:
    """The agent in the guest of `machine`, at the other end of `line`."""

    def __init__(self, line: AgentLine, machine: MachineSpec) -> None:
        self._line = line
        self._machine = machine

    async def ping(self, limit_s: float = ANSWER_S) -> None:
        """Returns if it answers."""
        await self._ask("guest-ping", dict[str, Any], limit_s=limit_s)

    async def abilities(self) -> frozenset[str]:
        """The commands that it has and allows."""
        answer = await self._ask("guest-info", _Abilities)
        return frozenset(command.name for command in answer.supported_commands if command.enabled)

    async def open(self, path: str, mode: str) -> int:
        """A handle of a file, opened as by `fopen`. To open a pipe may take an agent's life: it waits for the other end."""
        return await self._ask("guest-file-open", _Number, {"path": path, "mode": mode})

    async def close(self, handle: int) -> None:
        """Close a file. Raises `GuestRefused` also when what was written to it doesn't fit on the disk."""
        await self._ask("guest-file-close", dict[str, Any], {"handle": handle})

    async def seek(self, handle: int, offset: int) -> None:
        """Go to a place in a file, counted in bytes from its beginning."""
        await self._ask("guest-file-seek", dict[str, Any], {"handle": handle, "offset": offset, "whence": 0})

    async def write(self, handle: int, content: bytes) -> None:
        """Write all of `content`, in as many requests as it takes."""
        sent = idle = 0
        while sent < len(content):
            piece = content[sent : sent + WRITE_BYTES]
            encoded = binascii.b2a_base64(piece, newline=False).decode()
            count = (await self._ask("guest-file-write", _Written, {"handle": handle, "buf-b64": encoded})).count
            if count > len(piece):
                raise self.nonsense("guest-file-write", f"it wrote {count} of {len(piece)} bytes")
            sent += count
            idle = 0 if count else idle + 1
            await self._not_idle(idle, "takes nothing more of what is written to it")

    async def read(self, handle: int, limit: int) -> tuple[bytes, bool]:
        """The next bytes of a file, `limit` at most but not none, unless it ends here; and whether it ends here."""
        idle = 0
        while True:
            wanted = min(limit, READ_BYTES)
            answer = await self._ask("guest-file-read", _Read, {"handle": handle, "count": wanted})
            try:
                content = binascii.a2b_base64(answer.content)
            except (binascii.Error, ValueError):
                raise self.nonsense("guest-file-read", "its content is no base64") from None
            if len(content) != answer.count or answer.count > wanted:
                raise self.nonsense("guest-file-read", f"{len(content)} bytes, said to be {answer.count} of {wanted}")
            if content or answer.eof:
                return content, answer.eof
            idle += 1
            await self._not_idle(idle, "gives nothing, and no end")

    async def start(self, argv: Sequence[str]) -> int:
        """Start a program; its process number. What it prints is lost."""
        return (await self._ask("guest-exec", _Started, {"path": argv[0], "arg": list(argv[1:])})).pid

    async def status(self, pid: int) -> ExecStatus:
        """What became of a program that this agent started. That it has ended is told once."""
        return await self._ask("guest-exec-status", ExecStatus, {"pid": pid})

    async def time(self) -> float:
        """What the guest's clock says, in seconds since the epoch."""
        return await self._ask("guest-get-time", _Nanoseconds) / 1e9

    async def set_time(self, at: float) -> None:
        """Set the guest's clock, and that of its hardware."""
        await self._ask("guest-set-time", dict[str, Any], {"time": int(at * 1e9)})

    def nonsense(self, command: str, what: str) -> GuestUnreachable:
        """The error for a reply that can't be."""
        return GuestUnreachable(self._machine.name, f"its agent's reply to {command} makes no sense: {what[:_WORDS]}")

    def refused(self, why: str) -> GuestRefused:
        """The error for what the guest can't do."""
        return GuestRefused(self._machine.name, why)

    async def _ask(
        self, command: str, kind: type[_Value], arguments: dict[str, Any] | None = None, limit_s: float = ANSWER_S
    ) -> _Value:
        try:
            request = msgspec.json.encode({"execute": command, "arguments": arguments} if arguments else {"execute": command})
        except UnicodeEncodeError:
            raise self.refused(f"{command}: its agent can't be told a name that is no UTF-8") from None
        if len(request) > REQUEST_CHARS or rb"\u0000" in request:
            raise self.refused(f"{command}: too long, or with a NUL in it, for its agent")
        reply = await self._line.ask(self._machine, request.decode(), limit_s)
        if len(reply) > REPLY_CHARS:
            raise self.nonsense(command, f"it has {len(reply)} characters")
        try:
            return msgspec.json.decode(reply, type=_Answer[kind]).value  # type: ignore[valid-type]
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as exc:
            raise self._complaint(command, reply, exc) from None

    def _complaint(self, command: str, reply: str, exc: Exception) -> GuestRefused | GuestUnreachable:
        try:
            words = msgspec.json.decode(reply, type=_Refusal).error.desc
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return self.nonsense(command, str(exc))
        return self.refused(words[:_WORDS])

    async def _not_idle(self, idle: int, what: str) -> None:
        if idle > _IDLE_REPLIES:
            raise self.refused(f"a file in the guest {what}")
        if idle:
            await pause(_IDLE_PAUSE_S)
