"""Commands. Their actor is who the kernel says is there; what a request says of itself only makes it less."""

from __future__ import annotations

import logging

from starlette.requests import Request
from starlette.responses import Response

from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.sample import visible
from malbox_tui.remote import asking
from malbox_tui.remote.answers import in_json, malformed
from malbox_tui.remote.bounds import MAX_TEXT_CHARS
from malbox_tui.remote.link import Link
from malbox_tui.remote.operations import BODY_PROBLEMS, Operation
from malbox_tui.remote.protocol import Order
from malbox_tui.remote.served import Counter

log = logging.getLogger(__name__)


class Doing:
    """Orders."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def operations(self) -> tuple[Operation, ...]:
        """Commands."""
        command = "Carry out a command; a refused one is an outcome too"
        return (Operation("POST", "/v1/commands", command, self.command, CommandOutcome, body=Order, problems=BODY_PROBLEMS),)

    async def command(self, request: Request) -> Response:
        """`CommandOutcome`."""
        asking.refuse_read_only(request)
        order: Order = await asking.read_json(request, Order, self._counter.bounds)
        if len(order.key) > MAX_TEXT_CHARS:
            raise malformed(f"A key has at most {MAX_TEXT_CHARS} characters.")
        asking.bound_ids(getattr(order.action, "task_ids", ()))
        asking.bound_names(getattr(order.action, "machines", ()))
        peer = Link.of(request.scope).peer
        key = f"{peer.uid}/{order.key}" if order.key else ""  # nobody is answered with what another's command did
        command = Command(action=order.action, actor=peer.name, key=key, origin=asking.origin_of(request))
        outcome = await self._counter.client.do(command)
        what, how = type(order.action).__name__, "done" if outcome.done else "refused"
        log.info("%s by %s, %s: %s (%s)", what, visible(command.actor), command.origin, how, outcome.message)
        return in_json(outcome)
