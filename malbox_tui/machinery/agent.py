"""The QEMU guest agent's line: one request, one reply."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import msgspec

from malbox_tui.machinery.binding import libvirt_module, qemu_module
from malbox_tui.machinery.domains import find_domain
from malbox_tui.machinery.line import Kind, is_alive
from malbox_tui.machinery.link import Link, pause
from malbox_tui.machinery.refusals import Code, Refusal, Unreachable, refusal_of
from malbox_tui.model.errors import GuestLineLost, GuestRefused, GuestUnreachable, MachineMissing
from malbox_tui.model.machine import MachineSpec

REPEATABLE = frozenset(
    {
        "guest-ping",
        "guest-info",
        "guest-sync",
        "guest-sync-delimited",
        "guest-set-time",
        "guest-file-flush",
        "guest-network-get-interfaces",
    }
)
"""Requests that may reach the guest twice, and so are asked again when the connection to libvirt was lost under them; so are those
whose name has a "-get-" in it."""

REFUSED = "unable to execute QEMU agent command "
"""How libvirt begins what an agent answers that it can't do; the number of the error says only that something was wrong."""

DAEMON_S = 40.0
"""How much longer than the guest the hypervisor may take: a daemon that is frozen or starts anew is not the guest's fault."""


BROKEN = "QEMU guest agent is not available due to an error"
"""What libvirt answers for a line that it holds for broken, without asking the guest."""
_NO_REQUEST = "{"
"""libvirt looks at the line before it reads the request, and refuses this one before it reaches the guest."""

NOT_CONNECTED = "QEMU guest agent is not connected"
"""What libvirt answers for a moment when its daemon started anew. The guest has got nothing then, so it is asked again."""
LOOK_AGAIN_S = 0.1


class _Request(msgspec.Struct):
    execute: str = ""


async def ask(link: Link, machine: MachineSpec, request: str, limit_s: float) -> str:
    """As `AgentLine.ask`. Cancelled: the guest may have got the request."""
    seconds = max(1, math.ceil(limit_s))
    try:
        async with asyncio.timeout(seconds + DAEMON_S):
            while True:
                try:
                    return await link.run(
                        lambda connection: _ask(connection, machine, request, seconds), Kind.AGENT, again=is_repeatable(request)
                    )
                except Refusal as refusal:
                    if not (link.was_lost_lately and NOT_CONNECTED in refusal.words):
                        raise
                await pause(LOOK_AGAIN_S)
    except TimeoutError:
        raise GuestUnreachable(
            machine.name, f"its hypervisor {machine.uri} did not answer for {seconds + DAEMON_S:g} s"
        ) from None
    except Unreachable as error:
        raise GuestUnreachable(machine.name, str(error)) from error
    except Refusal as refusal:
        if refusal.lost:
            words = f"the connection to its hypervisor was lost while its guest was asked: {refusal.words}"
            raise GuestLineLost(machine.name, words) from refusal
        raise GuestUnreachable(machine.name, refusal.words) from refusal
    except MachineMissing as error:
        raise GuestUnreachable(machine.name, error.problem) from error


def is_line_broken(domain: Any) -> bool:
    """Whether libvirt would ask the guest nothing, whatever its agent does. Runs in a thread; the guest is not asked."""
    libvirt = libvirt_module()
    try:
        qemu_module().qemuAgentCommand(domain, _NO_REQUEST, 1, 0)
    except libvirt.libvirtError as error:
        return BROKEN in refusal_of(error).words
    return False


def _ask(connection: Any, machine: MachineSpec, request: str, seconds: int) -> str:
    """Raises `GuestRefused`; what else is wrong with the guest as the error of libvirt."""
    libvirt = libvirt_module()
    domain = find_domain(connection, machine)
    try:
        reply: str = qemu_module().qemuAgentCommand(domain, request, seconds, 0)
    except libvirt.libvirtError as error:
        refusal = refusal_of(error)
        if is_alive(connection) and (refusal.code == Code.RPC or REFUSED in refusal.words):
            raise GuestRefused(machine.name, _agent_words(refusal)) from None
        raise
    return reply


def _agent_words(refusal: Refusal) -> str:
    if refusal.code == Code.RPC:
        return f"the request or its reply is too large for libvirt: {refusal.words}"
    _, _, words = refusal.words.partition(REFUSED)
    return words or refusal.words


def is_repeatable(request: str) -> bool:
    """Whether a request may reach the guest twice."""
    try:
        name = msgspec.json.decode(request, type=_Request).execute
    except (msgspec.MsgspecError, UnicodeError):
        return False
    return name in REPEATABLE or "-get-" in name
