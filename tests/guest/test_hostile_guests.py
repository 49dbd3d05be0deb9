"""Guests that say anything at all: a conversation ends as its port promises, and what is taken of what they say is bounded."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from malbox_tui.guest.linux import Linux
from malbox_tui.guest.program import QgaProgram
from malbox_tui.guest.qga import QgaChannel
from malbox_tui.guest.session import NEEDED
from malbox_tui.guest.system import PATH_BYTES, GuestSystem
from malbox_tui.guest.windows import Windows
from malbox_tui.model.errors import MachineError
from malbox_tui.model.machine import MachineSpec, PowerState
from malbox_tui.ports import GuestMark, GuestSession
from tests.support.virtual_time import run_virtual

BASE = {"linux": "/tmp/.0123456789abcdef", "windows": "C:\\Users\\Public\\.0123456789abcdef"}
SYSTEMS: dict[str, GuestSystem] = {"linux": Linux(), "windows": Windows()}
LIMIT = 5

PIECES = st.sampled_from(
    [
        b".0123456789abcdef",
        b"\n.0123456789abcdef\n",
        b"\n",
        b"\r\n",
        b" ",
        b" (",
        b") ",
        b"/",
        b"/tmp/file",
        b"\0",
        b"\xff",
        b"\xef\xbb\xbf",
        b"-",
        b"--5",
        b"1e400",
        b"nan",
        b"7",
        b"-7",
        b"+7",
        b"1_0",
        "\u0663".encode(),
        b"9" * 18,
        b"9" * 19,
        b"S",
        b"Z",
        b"0 " * 20,
        b"QQ==",
        b"Q",
        b"gone",
        b"pending",
    ]
)
LONG = st.sampled_from([b"x", b"9"]).map(lambda piece: piece * 2 * PATH_BYTES)
LEFT = st.lists(PIECES | st.binary(max_size=8) | LONG, max_size=40).map(b"".join)
"""What a command leaves, of the pieces that the real ones are made of."""


@pytest.mark.parametrize("kind", SYSTEMS)
@given(left=LEFT)
@example(left=b"6 --5 QQ==\r\n")
@example(left=b"9" * 5000 + b"\n1 (a) S 1 1 1" + b" 0" * 48 + b"\n\n.0123456789abcdef\n")
@example(left=b"1 \n1 (a) S 1 1 1" + b" 0" * 15 + b" " + b"9" * 400 + b" 0" * 40 + b"\n")
@example(left=b"1 \n" + (b"1 (a) S 1 1 1" + b" 0" * 48 + b"\n") * (LIMIT + 3))
@example(left=b".0123456789abcdef:\n" * 5)
@example(left=b":\r\n" * 5)
@example(left=b".0123456789abcdef 1 1 /x\n" * (LIMIT + 3))
@example(left=b"1 1 1 QQ== QQ==\r\n" * (LIMIT + 3))
def test_what_a_command_leaves_is_read_whatever_it_is(kind: str, left: bytes) -> None:
    system, base = SYSTEMS[kind], BASE[kind]
    files, facts = system.files(left, base, LIMIT), system.facts(left, base, LIMIT)
    listed = system.listed(left, base, 2, LIMIT)
    assert [len(told) <= LIMIT for told in (files, *listed)] == [True] * 3
    assert len(facts) <= LIMIT
    assert all(len(file.path) <= PATH_BYTES and file.size_bytes >= 0 for file in files)
    assert all(told.process.pid > 0 and (told.process.parent is None or told.process.parent > 0) for told in facts)
    msgspec.json.encode([told.process for told in facts])
    system.born(left)
    system.found(left, "word")


# --- conversations ---------------------------------------------------------------------------------------------------------------

NUMBERS = st.sampled_from([0, 1, -1, 2**31, 2**63, 2**64, 10**30, 10**400, 1.5]) | st.integers()
TEXTS = st.sampled_from(["", "QQ==", "Q", "=", "\0", "\ud800"]) | LEFT.map(lambda left: base64.b64encode(left).decode())
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["return", "error", "desc", "count", "eof", "buf-b64", "pid", "exited", "exitcode", "signal"]), inner
        )
    ),
    max_leaves=6,
)
REPLIES = st.text(max_size=20) | VALUES.map(json.dumps) | VALUES.map(lambda value: json.dumps({"return": value}))


class Honest:
    """The agent of a guest in which all works and nothing is there; `lies` are told first to last where their turn comes."""

    def __init__(self, system: GuestSystem) -> None:
        self.lies: list[str | None] = []
        self._system = system

    async def ask(self, machine: MachineSpec, request: str, limit_s: float) -> str:
        """As `AgentLine.ask`."""
        if self.lies and (lie := self.lies.pop(0)) is not None:
            return lie
        asked = json.loads(request)
        return json.dumps({"return": self._answer(asked["execute"], asked.get("arguments", {}))})

    def _answer(self, command: str, arguments: dict[str, Any]) -> Any:
        if command == "guest-info":
            return {"supported_commands": [{"name": name, "enabled": True} for name in NEEDED]}
        if command == "guest-file-write":
            return {"count": len(base64.b64decode(arguments["buf-b64"]))}
        return {
            "guest-file-open": 1,
            "guest-file-read": {"count": 0, "buf-b64": "", "eof": True},
            "guest-exec": {"pid": 7},
            "guest-exec-status": {"exited": True, "exitcode": 0},
            "guest-get-time": 0,
        }.get(command, {})


async def _running(_machine: MachineSpec) -> PowerState:
    return PowerState.RUNNING


async def _run(session: GuestSession) -> None:
    program = await session.start(["/program"])
    assert isinstance(program, QgaProgram)
    await program.output(10)
    await program.kill()
    msgspec.json.encode((await program.wait(10)).code)


ASKED: Sequence[Callable[[GuestSession], Awaitable[object]]] = (
    lambda session: session.ping(),
    lambda session: session.list("/tmp", LIMIT),
    lambda session: session.pull("/tmp/file", lambda _piece: None, 100),
    lambda session: session.processes(),
    lambda session: session.look(["/tmp", "/data"], LIMIT),
    lambda session: session.set_clock(1.0),
    lambda session: session.mark(),
    lambda session: session.traces(GuestMark("/tmp/mark", "word")),
    _run,
)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SYSTEMS)
@settings(max_examples=150)
@given(
    lies=st.lists(st.none() | REPLIES, min_size=1, max_size=12), asked=st.sampled_from(range(len(ASKED))), is_late=st.booleans()
)
@example(lies=['{"error": {"desc": "no"}}', '{"return": 1' + "0" * 400 + "}"], asked=4, is_late=True)
def test_whatever_an_agent_replies_a_conversation_ends_as_its_port_promises(
    kind: str, lies: list[str | None], asked: int, is_late: bool
) -> None:
    async def talk() -> None:
        line = Honest(SYSTEMS[kind])
        line.lies = [] if is_late else list(lies)
        async with asyncio.timeout(3600):
            session = await QgaChannel(line, _running, rejoin_s=3.0).connect(
                MachineSpec(name="m", provider="played", platform=kind)
            )
            line.lies = list(lies) if is_late else line.lies
            await ASKED[asked](session)

    try:
        run_virtual(talk())
    except MachineError:
        return
