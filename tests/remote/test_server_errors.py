"""What goes wrong behind the server, as those who ask are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.model.errors import (
    ConfigError,
    EngineStopped,
    LeaseLost,
    MalboxError,
    RefusedCommand,
    SampleMissing,
    StaleTask,
    StoreError,
    StoreFull,
    UnknownTask,
)
from malbox_tui.model.queries import TaskPage, TaskQuery
from tests.remote.fakes import Script, serving_script

TOLD = [
    (UnknownTask(1), 404, "not_found"),
    (SampleMissing("0"), 404, "not_found"),
    (StaleTask(1, "pending"), 409, "stale"),
    (LeaseLost(1, "running"), 409, "stale"),
    (RefusedCommand("No."), 409, "refused"),
    (EngineStopped(), 503, "stopping"),
    (StoreError("It is gone."), 503, "store"),
    (StoreFull("It is full."), 503, "store"),
    (ConfigError("file", None, "it is wrong."), 400, "malformed"),
]


class Failing(Script):
    """Its tasks can't be listed."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def query(self, query: TaskQuery) -> TaskPage:
        raise self._error


@pytest.mark.parametrize(("error", "status", "code"), TOLD, ids=lambda value: type(value).__name__)
async def test_an_error_of_the_engine_has_a_status_and_says_what_it_is(
    tmp_path: Path, error: MalboxError, status: int, code: str
) -> None:
    async with serving_script(Failing(error), tmp_path) as scene:
        asker = await scene.connect()
        reply = await asker.get("/v1/tasks")
        assert reply.problem == (status, code)
        assert str(error) in reply.body.decode()
        assert (await asker.get("/health")).status == 200


async def test_an_unexpected_error_is_told_without_its_details_which_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving_script(Failing(ZeroDivisionError("a secret")), tmp_path) as scene:
        reply = await (await scene.connect()).get("/v1/tasks")
        assert reply.problem == (500, "internal")
        assert b"secret" not in reply.body
        assert (await (await scene.connect()).get("/health")).status == 200
    assert "a secret" in caplog.text
