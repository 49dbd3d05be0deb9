"""Looking at an engine: who serves, its overview, its numbers, its tasks and what was done to them, and what happens."""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from malbox_tui.model.errors import EngineStopped, MalboxError
from malbox_tui.model.intake import IntakePage, LineQuery
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import MAX_ROWS, TaskPage, TaskQuery, TaskRecord
from malbox_tui.model.sample import visible
from malbox_tui.remote import asking, listing
from malbox_tui.remote.answers import LINES, Answer, in_json, malformed, not_found
from malbox_tui.remote.event_answer import EventAnswer
from malbox_tui.remote.metrics import MEDIA_TYPE as METRICS
from malbox_tui.remote.metrics import metrics_text
from malbox_tui.remote.operations import BODY_PROBLEMS, Operation
from malbox_tui.remote.protocol import PROTOCOL, ActionPage, Health, IntakeList, StreamLine, parse_position
from malbox_tui.remote.served import Counter

_TASK_ID = re.compile(r"[1-9][0-9]{0,15}")


class Looking:
    """Changes nothing."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def operations(self) -> tuple[Operation, ...]:
        """All that can be looked at."""
        missing = (HTTPStatus.NOT_FOUND,)
        return (
            Operation("GET", "/health", "Who serves, and whether it goes on", self.health, Health),
            Operation("GET", "/metrics", "The engine in numbers, for Prometheus", self.metrics, media_type=METRICS),
            Operation("GET", "/v1/overview", "The engine at this moment", self.overview, Overview),
            Operation("GET", "/v1/tasks", "A window of tasks", self.tasks, TaskPage, parameters=listing.TASKS),
            Operation("POST", "/v1/tasks/query", "The same", self.query, TaskPage, body=TaskQuery, problems=BODY_PROBLEMS),
            Operation("GET", "/v1/tasks/{id}", "One task", self.task, TaskRecord, problems=missing),
            Operation("GET", "/v1/actions", "Who did what", self.actions, ActionPage, parameters=listing.ACTIONS),
            Operation("GET", "/v1/intakes", "What came in", self.intakes, IntakeList, parameters=listing.INTAKES),
            Operation(
                "POST",
                "/v1/intakes/query",
                "One intake's account",
                self.lines,
                IntakePage,
                body=LineQuery,
                problems=BODY_PROBLEMS,
            ),
            Operation("GET", "/v1/events", "What happens, a line each", self.events, StreamLine, LINES, listing.EVENTS),
        )

    async def health(self, request: Request) -> Response:
        """Answered as long as anything is."""
        counter = self._counter
        floor = counter.relay.floor
        status = "stopping"
        troubles: tuple[str, ...] = ()
        with suppress(EngineStopped):
            overview = await counter.client.overview()
            troubles = overview.troubles
            if overview.stopping is None:
                status = "troubled" if troubles else "ok"
        return in_json(
            Health(
                status=status,
                engine_id="" if floor is None else floor.engine_id,
                version=counter.served.version,
                protocol=PROTOCOL,
                host=socket.gethostname(),
                pid=os.getpid(),
                troubles=troubles,
            )
        )

    async def metrics(self, request: Request) -> Response:
        """Prometheus' text."""
        overview = await self._counter.overview()
        return Answer(metrics_text(overview, self._counter.served.version, self._counter.relay.readers).encode(), METRICS)

    async def overview(self, request: Request) -> Response:
        """`Overview`."""
        return in_json(await self._counter.overview())

    async def tasks(self, request: Request) -> Response:
        """`TaskPage`, by parameters."""
        asked: listing.TaskListing = asking.read_query(request, listing.TASKS)
        return in_json(await self._counter.client.query(asked.query()))

    async def query(self, request: Request) -> Response:
        """`TaskPage`, by a `TaskQuery`."""
        query: TaskQuery = await asking.read_json(request, TaskQuery, self._counter.bounds)
        if not 0 <= query.limit <= MAX_ROWS or query.offset < 0:
            raise malformed(f"A window begins at 0 or later and holds at most {MAX_ROWS} tasks.")
        asking.bound_ids(query.where.task_ids or ())
        asking.bound_sums(query.where.sha256s or ())
        return in_json(await self._counter.client.query(query))

    async def task(self, request: Request) -> Response:
        """`TaskRecord`."""
        return in_json(await self._counter.record(task_id(request)))

    async def actions(self, request: Request) -> Response:
        """`ActionPage`."""
        asked: listing.ActionListing = asking.read_query(request, listing.ACTIONS)
        rows = await self._counter.client.actions(asked.before, asked.limit)
        full = bool(rows) and len(rows) == asked.limit
        return in_json(ActionPage(rows=tuple(rows), more=full and bool(await self._counter.client.actions(rows[-1].number, 1))))

    async def intakes(self, request: Request) -> Response:
        """`IntakeList`."""
        asked: listing.IntakeListing = asking.read_query(request, listing.INTAKES)
        rows = await self._counter.client.intakes(asked.before, asked.limit)
        full = bool(rows) and len(rows) == asked.limit
        return in_json(IntakeList(rows=tuple(rows), more=full and bool(await self._counter.client.intakes(rows[-1].number, 1))))

    async def lines(self, request: Request) -> Response:
        """`IntakePage`."""
        query: LineQuery = await asking.read_json(request, LineQuery, self._counter.bounds)
        if not 0 <= query.limit <= MAX_ROWS or query.after < 0:
            raise malformed(f"A window begins after a number of 0 or more and holds at most {MAX_ROWS} lines.")
        return in_json(await self._counter.client.intake_lines(query))

    async def events(self, request: Request) -> Response:
        """`StreamLine`s."""
        asked: listing.EventListing = asking.read_query(request, listing.EVENTS)
        try:
            after = None if asked.after is None else parse_position(asked.after)
        except MalboxError as exc:
            raise malformed(str(exc)) from exc
        return EventAnswer(self._counter, await self._counter.client.overview(), after, asked.follow)


def task_id(request: Request) -> int:
    """The task that the path names. Raises `Unanswered` when what stands there is none's number."""
    text: str = request.path_params["id"]
    if _TASK_ID.fullmatch(text) is None:
        raise not_found(f"'{visible(text[:40])}' is no number of a task.")
    return int(text)
