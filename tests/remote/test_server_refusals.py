"""What a server doesn't do, and how it says so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from malbox_tui.model.commands import CancelTasks, PausePool, ShutdownMode
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskQuery
from malbox_tui.model.report import ResultRef
from malbox_tui.remote.protocol import MAX_JSON_BYTES, READ_ONLY_HEADER, Health, Order, Reading
from tests.remote.asker import Asker
from tests.remote.rig import ServerRig, served

JSON = {"content-type": "application/json"}
COMMANDS, QUERY, READ, SAMPLES = "/v1/commands", "/v1/tasks/query", "/v1/results/read", "/v1/samples?name=x"
PAUSE = {"action": {"command": "PausePool"}}
REFERENCE = {"name": "n", "format": "bytes", "size_bytes": 1, "sha256": "0", "path": "1/t/p/n"}

MALFORMED: Mapping[str, tuple[str, Any]] = {
    "no JSON": (COMMANDS, b"pause"),
    "nothing": (COMMANDS, b""),
    "no object": (COMMANDS, []),
    "no action": (COMMANDS, {}),
    "an unknown action": (COMMANDS, {"action": {"command": "Explode"}}),
    "an unknown field": (COMMANDS, {**PAUSE, "actor": "mallory"}),
    "an unknown field of the action": (COMMANDS, {"action": {"command": "PausePool", "actor": "mallory"}}),
    "a wrong type": (COMMANDS, {"action": {"command": "CancelTasks", "task_ids": ["1"]}}),
    "a number beyond all": (COMMANDS, {"action": {"command": "CancelTasks", "task_ids": [2**63]}}),
    "a float beyond all": (COMMANDS, b'{"action": {"command": "Shutdown", "mode": "drain", "within_s": 1e999}}'),
    "too many ids": (COMMANDS, {"action": {"command": "CancelTasks", "task_ids": list(range(10_001))}}),
    "too many machines": (COMMANDS, {"action": {"command": "ProbeMachines", "machines": ["m"] * 1001}}),
    "a machine without a platform": (
        COMMANDS,
        {"action": {"command": "SetMachine", "machine": {"name": "m1", "provider": "libvirt"}}},
    ),
    "a long key": (COMMANDS, {**PAUSE, "key": "k" * 201}),
    "invalid UTF-8": (COMMANDS, b'{"action": {"command": "PausePool"}, "key": "\xff"}'),
    "a megabyte of brackets": (COMMANDS, b"[" * MAX_JSON_BYTES),
    "a megabyte of objects": (QUERY, b'{"where":' * (MAX_JSON_BYTES // 10)),
    "brackets in an unknown field": (
        COMMANDS,
        b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b',"action":{"command":"PausePool"}}',
    ),
    "too large a window": (QUERY, {"limit": 1001}),
    "a negative window": (QUERY, {"offset": -1}),
    "an unknown field of a filter": (QUERY, {"where": {"colour": "red"}}),
    "too much of a result": (READ, {"reference": REFERENCE, "max_bytes": 2**40}),
    "less than nothing of a result": (READ, {"reference": REFERENCE, "max_bytes": -1}),
}

MALFORMED_QUERIES = (
    "/v1/tasks?limit=1001",
    "/v1/tasks?limit=-1",
    "/v1/tasks?limit=many",
    "/v1/tasks?limit=1&limit=2",
    "/v1/tasks?colour=red",
    "/v1/tasks?state=exploded",
    "/v1/tasks?offset=99999999999999999999999999",
    "/v1/tasks?sha256=%ff",
    "/v1/tasks?id=0",
    "/v1/actions?before=-1",
    "/v1/events?after=here",
    "/v1/events?after=",
    "/v1/events?follow=perhaps",
    "/v1/tasks/1/results/p/n?max_bytes=99999999999",
)

NOWHERE = (
    "/",
    "/v1",
    "/v1/overview/",
    "/v2/overview",
    "/v1/tasks/7",
    "/v1/tasks/0",
    "/v1/tasks/-1",
    "/v1/tasks/1e3",
    "/v1/tasks/99999999999999999999999999",
    "/v1/tasks/%D9%A3",
    "/v1/tasks/..",
    "/v1/tasks/%2e%2e",
    "/v1/tasks/..%2f..%2fetc%2fpasswd",
    "/v1/tasks/%00",
    "/v1/tasks/%ff",
    "/v1/tasks/1%0a",
    "/../../etc/passwd",
    "//etc/passwd",
)


async def pool_is_untouched(asker: Asker) -> bool:
    return (await asker.get("/v1/overview")).as_a(Overview).paused is None


@pytest.mark.parametrize("case", MALFORMED)
async def test_a_malformed_request_changes_nothing(tmp_path: Path, case: str) -> None:
    target, body = MALFORMED[case]
    async with served(tmp_path) as rig, rig.asker() as asker:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        assert (await asker.ask("POST", target, content, JSON)).problem == (400, "malformed")
        assert await pool_is_untouched(asker)


async def test_a_malformed_query_is_told_so(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        for target in MALFORMED_QUERIES:
            assert (await asker.get(target)).problem == (400, "malformed"), target


@pytest.mark.parametrize("target", NOWHERE)
async def test_what_is_nowhere_is_not_found(tmp_path: Path, target: str) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        assert (await asker.get(target)).problem == (404, "not_found")


async def test_another_method_is_told_which_there_are(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        reply = await asker.ask("DELETE", "/v1/tasks/1")
        assert reply.problem == (405, "method_not_allowed")
        assert "GET" in reply.headers["allow"]


async def test_content_that_is_no_json_by_its_own_word_is_not_read(tmp_path: Path) -> None:
    async with served(tmp_path) as rig:
        for media_type in ("text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
            async with rig.asker() as asker:
                reply = await asker.ask("POST", COMMANDS, json.dumps(PAUSE).encode(), {"content-type": media_type})
                assert reply.problem == (415, "unsupported_media_type")


async def test_json_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        asker.begin("POST", COMMANDS, {**JSON, "content-length": str(MAX_JSON_BYTES + 1)})
        assert (await asker.reply()).problem == (413, "too_large")


async def test_json_that_doesnt_say_how_large_it_is_is_read_up_to_the_limit(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        asker.begin("POST", COMMANDS, {**JSON, "transfer-encoding": "chunked"})
        piece = b"%x\r\n%s\r\n" % (65536, b" " * 65536)
        for _ in range(MAX_JSON_BYTES // 65536 + 1):
            asker.writer.write(piece)
        assert (await asker.reply()).problem == (413, "too_large")


@pytest.mark.parametrize("flag", ["1", "yes", "true"])
async def test_one_who_may_only_look_changes_nothing(tmp_path: Path, flag: str) -> None:
    async with served(tmp_path) as rig:
        async with rig.asker(**{READ_ONLY_HEADER: flag}) as asker:
            assert (await asker.post(COMMANDS, Order(action=PausePool()))).problem == (403, "read_only")
        async with rig.asker(**{READ_ONLY_HEADER: flag}) as asker:
            assert (await asker.upload("name=x", b"x")).problem == (403, "read_only")
        async with rig.asker(**{READ_ONLY_HEADER: flag}) as asker:
            assert await pool_is_untouched(asker)
            assert (await asker.post(QUERY, TaskQuery())).status == 200


async def test_after_the_engines_end_everything_is_told_that_it_stops(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        await end(rig)
        for target in ("/v1/overview", "/v1/tasks", "/v1/tasks/1", "/metrics", "/v1/events"):
            assert (await asker.get(target)).problem == (503, "stopping"), target
        assert (await asker.post(COMMANDS, Order(action=CancelTasks(task_ids=(1,))))).problem == (503, "stopping")
        assert (await asker.upload("name=x", b"x")).problem == (503, "stopping")
        assert (await asker.get("/health")).as_a(Health).status == "stopping"


async def test_a_reference_that_no_task_has_leads_nowhere(tmp_path: Path) -> None:
    secret = tmp_path / "results" / "secret"
    async with served(tmp_path) as rig, rig.asker() as asker:
        secret.write_bytes(b"secret")
        await asker.upload("name=x", b"x")
        for path in ("1/t/p/n", "../secret", "secret", "/etc/passwd", "1/../secret", "7/t/p/n", "", "1/", "1/\x00"):
            reference = ResultRef("n", "bytes", 6, "0", path)
            reply = await asker.post(READ, Reading(reference=reference, max_bytes=100))
            assert reply.problem == (404, "not_found"), path


async def end(rig: ServerRig) -> None:
    """End the engine under its server."""
    rig.thread.stop(ShutdownMode.GIVE_BACK)
    await asyncio.to_thread(rig.thread.join)
