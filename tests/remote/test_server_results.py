"""Results over the socket: what a task refers to, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from malbox_tui.model.queries import TaskRecord
from malbox_tui.model.report import ResultRef
from malbox_tui.remote.protocol import Reading
from tests.remote.asker import Asker
from tests.remote.rig import FOUND, Reporting, served

NAMED = "/v1/tasks/1/results/scripted/notes"


@asynccontextmanager
async def with_a_result(folder: Path) -> AsyncIterator[tuple[Asker, ResultRef]]:
    """An asker of an engine whose task 1 has a result."""
    async with served(folder, workers=1, runner=Reporting(folder)) as rig, rig.asker() as asker:
        await asker.upload("name=x", b"x")
        async with rig.asker() as follower:
            await follower.until_ended(1)
        record = (await asker.get("/v1/tasks/1")).as_a(TaskRecord)
        yield asker, record.task.plugins[0].results[0]


async def test_a_result_is_read_by_name_and_by_reference(tmp_path: Path) -> None:
    async with with_a_result(tmp_path) as (asker, reference):
        by_name = await asker.get(NAMED)
        assert (by_name.status, by_name.body) == (200, FOUND)
        assert by_name.headers["content-type"] == "application/octet-stream"
        assert (await asker.post("/v1/results/read", Reading(reference=reference, max_bytes=1000))).body == FOUND


async def test_no_more_is_read_than_was_asked_for(tmp_path: Path) -> None:
    async with with_a_result(tmp_path) as (asker, reference):
        assert (await asker.get(f"{NAMED}?max_bytes=7")).body == FOUND[:7]
        assert (await asker.get(f"{NAMED}?max_bytes=0")).body == b""
        assert (await asker.post("/v1/results/read", Reading(reference=reference, max_bytes=5))).body == FOUND[:5]


async def test_other_names_lead_nowhere(tmp_path: Path) -> None:
    async with with_a_result(tmp_path) as (asker, _):
        for plugin, name in (
            ("scripted", "other"),
            ("other", "notes"),
            ("..", ".."),
            ("%2e%2e", "x"),
            ("scripted", "..%2fnotes"),
        ):
            assert (await asker.get(f"/v1/tasks/1/results/{plugin}/{name}")).problem == (404, "not_found"), (plugin, name)


async def test_a_reference_that_was_altered_is_no_reference(tmp_path: Path) -> None:
    async with with_a_result(tmp_path) as (asker, reference):
        for field, value in {"path": "1/x/scripted/notes", "sha256": "0", "size_bytes": 1, "format": "json", "name": "x"}.items():
            altered = msgspec.structs.replace(reference, **{field: value})
            assert (await asker.post("/v1/results/read", Reading(reference=altered, max_bytes=9))).problem == (404, "not_found")
