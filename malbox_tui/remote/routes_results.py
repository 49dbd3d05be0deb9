"""Reading results. Only what a task refers to is read, so no name or path of a request ever leads to a file by itself."""

from __future__ import annotations

import re
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from malbox_tui.model.report import ResultRef
from malbox_tui.remote import asking, listing
from malbox_tui.remote.answers import BYTES, Answer, malformed, not_found
from malbox_tui.remote.operations import BODY_PROBLEMS, Operation
from malbox_tui.remote.protocol import MAX_READ_BYTES, Reading
from malbox_tui.remote.routes_look import task_id
from malbox_tui.remote.served import Counter

_OWNER = re.compile(r"([1-9][0-9]{0,15})/")
"""How the path of a reference begins: with the number of its task."""


class Results:
    """The bytes of results."""

    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def operations(self) -> tuple[Operation, ...]:
        """By name, and by reference."""
        missing = HTTPStatus.NOT_FOUND
        by_name, by_reference = "/v1/tasks/{id}/results/{plugin}/{name}", "/v1/results/read"
        problems = (missing, *BODY_PROBLEMS)
        return (
            Operation("GET", by_name, "A result", self.result, None, BYTES, listing.READING, problems=(missing,)),
            Operation("POST", by_reference, "A result", self.read, None, BYTES, body=Reading, problems=problems),
        )

    async def result(self, request: Request) -> Response:
        """The names are compared with those that the task has."""
        asked: listing.ReadListing = asking.read_query(request, listing.READING)
        record = await self._counter.record(task_id(request))
        names = (request.path_params["plugin"], request.path_params["name"])
        for run in record.task.plugins:
            for reference in run.results:
                if (run.name, reference.name) == names:
                    return await self._bytes_of(reference, asked.max_bytes)
        raise not_found(f"Task {record.task.id} has no such result. Its record lists those it has.")

    async def read(self, request: Request) -> Response:
        """The reference is to be one of its task's own."""
        reading: Reading = await asking.read_json(request, Reading, self._counter.bounds)
        if not 0 <= reading.max_bytes <= MAX_READ_BYTES:
            raise malformed(f"At most {MAX_READ_BYTES} bytes are read at once.")
        if (owner := _OWNER.match(reading.reference.path)) is not None:
            record = await self._counter.record(int(owner[1]))
            if any(reading.reference in run.results for run in record.task.plugins):
                return await self._bytes_of(reading.reference, reading.max_bytes)
        raise not_found("No task has such a result.")

    async def _bytes_of(self, reference: ResultRef, max_bytes: int) -> Response:
        return Answer(await self._counter.client.read(reference, max_bytes), BYTES)
