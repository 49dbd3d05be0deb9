"""Commands and submissions. Their actor is who the kernel says is there; what a request says of itself only makes it less."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from malbox_tui.model.commands import Command, CommandOutcome
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.sample import visible
from malbox_tui.model.submission import Offer, Receipt, Refusal, SubmissionOptions
from malbox_tui.remote import asking, listing
from malbox_tui.remote.answers import Unanswered, in_json, malformed
from malbox_tui.remote.bounds import MAX_TEXT_CHARS
from malbox_tui.remote.link import Link
from malbox_tui.remote.operations import BODY_PROBLEMS, UPLOAD_PROBLEMS, Operation
from malbox_tui.remote.protocol import Order
from malbox_tui.remote.sample_query import parse_sample_query
from malbox_tui.remote.served import Counter
from malbox_tui.remote.uploads import Upload

log = logging.getLogger(__name__)


class Doing:
    """Everything that changes something."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def operations(self) -> tuple[Operation, ...]:
        """Commands and samples."""
        command, sample = "Carry out a command; a refused one is an outcome too", "Submit a sample: its content is the body"
        return (
            Operation("POST", "/v1/commands", command, self.command, CommandOutcome, body=Order, problems=BODY_PROBLEMS),
            Operation(
                "POST",
                "/v1/samples",
                sample,
                self.sample,
                Receipt,
                parameters=listing.SAMPLE,
                streams=True,
                problems=UPLOAD_PROBLEMS,
            ),
        )

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

    async def sample(self, request: Request) -> Response:
        """`Receipt`."""
        asking.refuse_read_only(request)
        try:
            offer, options = parse_sample_query(request.scope["query_string"])
        except MalboxError as exc:
            raise malformed(str(exc)) from exc
        actor, origin = Link.of(request.scope).peer.name, asking.origin_of(request)
        label = options.intake
        if label.key:  # nobody writes into another's account
            label = msgspec.structs.replace(label, key=f"{Link.of(request.scope).peer.uid}/{label.key}")
        options = msgspec.structs.replace(options, actor=actor, origin=origin, intake=label)
        limit_bytes = self._counter.served.max_sample_bytes()
        try:
            asking.refuse_declared(request, limit_bytes, "The sample")
        except Unanswered as refused:
            await self._enter(replace(offer, refusal=Refusal(refused.problem.code, refused.problem.message)), options)
            raise
        return in_json(await Upload(request, self._counter.bounds, limit_bytes).submit(self._counter.client, offer, options))

    async def _enter(self, offer: Offer, options: SubmissionOptions) -> None:
        """Have what is not even read in its account, too."""

        async def one() -> AsyncIterator[Offer]:
            yield offer

        await self._counter.client.submit(one(), options)
