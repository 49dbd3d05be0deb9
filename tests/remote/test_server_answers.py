"""Every place that can be asked, over a real socket."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

from malbox_tui.model.commands import (
    CancelTasks,
    CommandOutcome,
    PausePool,
    ProbeMachines,
    RemoveMachines,
    ResumePool,
    SetMachine,
)
from malbox_tui.model.machine import MachineSpec
from malbox_tui.model.overview import Overview
from malbox_tui.model.queries import TaskFilter, TaskPage, TaskQuery, TaskRecord, TaskSort
from malbox_tui.model.sample import SampleName
from malbox_tui.model.submission import Accepted, Receipt, Refused
from malbox_tui.model.task import TaskState
from malbox_tui.remote.protocol import PROTOCOL_HEADER, ActionPage, Health, Order
from tests.remote.rig import MAX_SAMPLE_BYTES, served


async def test_the_overview_is_the_engines_own(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        reply = await asker.get("/v1/overview")
        assert reply.headers[PROTOCOL_HEADER] == "1"
        told, own = reply.as_a(Overview), await rig.client.overview()
        assert told.position == own.position
        assert told.counts == own.counts


async def test_health_names_who_serves(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        health = (await asker.get("/health")).as_a(Health)
        assert (health.status, health.version) == ("ok", "1.2.3")
        assert health.engine_id == (await rig.client.overview()).position.engine_id


async def test_a_store_that_was_taken_away_is_told_to_whoever_watches_over_it(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        rig.folders.store.rename(tmp_path / "elsewhere")
        assert (await asker.upload("name=one", b"one")).as_a(Receipt).refusal.code == "store_failed"  # type: ignore[arg-type, union-attr]
        health = (await asker.get("/health")).as_a(Health)
        assert (health.status, len(health.troubles)) == ("troubled", 1)
        assert "was taken away while it was in use" in health.troubles[0]
        metrics = (await asker.get("/metrics")).body.decode().splitlines()
        assert {"malbox_store_failing 1", "malbox_troubles 1", "malbox_paused 1"} <= set(metrics)
        (tmp_path / "elsewhere").rename(rig.folders.store)


async def test_a_sample_becomes_a_task_with_its_name_as_it_was(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        receipt = (await asker.upload("name=a%2F%0A%FF.exe&origin=%2Ftmp%2Fx&priority=7", b"hello")).as_a(Receipt)  # type: ignore[arg-type]
        assert isinstance(receipt, Accepted)
        assert receipt.name == SampleName(b"a/\n\xff.exe", b"/tmp/x")
        record = (await asker.get(f"/v1/tasks/{receipt.task_id}")).as_a(TaskRecord)
        assert (record.task.priority, record.sample.size_bytes) == (7, 5)


async def test_what_the_engine_refuses_is_a_receipt(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        receipt = (await asker.upload("name=empty", b"")).as_a(Receipt)  # type: ignore[arg-type]
        assert isinstance(receipt, Refused)
        assert receipt.refusal.code == "empty"


async def test_what_is_done_to_machines_is_carried_out_by_the_engine_by_its_own_rules(tmp_path: Path) -> None:
    m1 = MachineSpec(name="m1", provider="simulated", platform="linux")
    async with served(tmp_path) as rig, rig.asker() as asker:
        for action, message in (
            (SetMachine(machine=m1), "Nothing here runs machines of 'simulated'. Nothing was changed."),
            (RemoveMachines(machines=("m1",)), "There is no machine 'm1'; there are none. Nothing was changed."),
            (ProbeMachines(machines=("m1",)), "There is no machine 'm1'; there are none. Nothing was changed."),
        ):
            outcome = (await asker.post("/v1/commands", Order(action=action))).as_a(CommandOutcome)
            assert (outcome.done, outcome.message) == (False, message)
        actions = (await asker.get("/v1/actions")).as_a(ActionPage).rows
        assert [record.action for record in actions][-1] == SetMachine(machine=m1)


async def test_tasks_are_listed_by_parameters_and_by_query(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        for name in ("one", "two", "three"):
            await asker.upload(f"name={name}", name.encode())
        for target, ids in {
            "/v1/tasks": [3, 2, 1],
            "/v1/tasks?sort=oldest&limit=2": [1, 2],
            "/v1/tasks?name=t": [3, 2],
            "/v1/tasks?name=%ff": [],
            "/v1/tasks?id=1&id=3": [3, 1],
            "/v1/tasks?state=pending&state=failed&offset=1": [2, 1],
            "/v1/tasks?state=failed": [],
        }.items():
            page = (await asker.get(target)).as_a(TaskPage)
            assert ([row.task.id for row in page.rows]) == ids, target
        query = TaskQuery(where=TaskFilter(states=frozenset({TaskState.PENDING})), sort=TaskSort.OLDEST, limit=1)
        page = (await asker.post("/v1/tasks/query", query)).as_a(TaskPage)
        assert (page.total, [row.task.id for row in page.rows]) == (3, [1])


async def test_a_command_is_carried_out_for_who_holds_the_socket(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        outcome = (await asker.post("/v1/commands", Order(action=PausePool()))).as_a(CommandOutcome)
        assert outcome.done
        assert (await asker.get("/v1/overview")).as_a(Overview).paused == f"paused by {getpass.getuser()}"
        assert (await asker.post("/v1/commands", Order(action=ResumePool()))).as_a(CommandOutcome).done


async def test_a_refused_command_is_an_outcome(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        outcome = (await asker.post("/v1/commands", Order(action=CancelTasks(task_ids=(9,))))).as_a(CommandOutcome)
        assert not outcome.done


async def test_a_command_that_is_sent_twice_is_carried_out_once(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        await asker.upload("name=one", b"one")
        order = Order(action=CancelTasks(task_ids=(1,)), key="k")
        first = await asker.post("/v1/commands", order)
        assert first.as_a(CommandOutcome).done
        assert (await asker.post("/v1/commands", order)).body == first.body


async def test_metrics_count_what_the_overview_does(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        await asker.upload("name=one", b"one")
        reply = await asker.get("/metrics")
        assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
        lines = reply.body.decode().splitlines()
        assert {
            'malbox_build_info{version="1.2.3"} 1',
            'malbox_tasks{state="pending"} 1',
            'malbox_tasks_ended_total{state="completed"} 0',
            "malbox_queue_pending 1",
            'malbox_workers{group="default",state="busy"} 0',
            'malbox_machines{state="ready"} 0',
            "malbox_disk_free_bytes 12345",
            "malbox_store_failing 0",
            "malbox_troubles 0",
        } <= set(lines)


async def test_an_upload_of_the_largest_size_comes_in_pieces(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker() as asker:
        content = bytes(range(256)) * (MAX_SAMPLE_BYTES // 256)
        receipt = (await asker.upload("name=large", content)).as_a(Receipt)  # type: ignore[arg-type]
        assert isinstance(receipt, Accepted)
        assert receipt.size_bytes == MAX_SAMPLE_BYTES


async def test_who_did_what_from_where_is_told_the_latest_first(tmp_path: Path) -> None:
    async with served(tmp_path) as rig, rig.asker(malbox_origin="ana@laptop", malbox_actor="mallory") as asker:
        await asker.post("/v1/commands", Order(action=PausePool()))
        await asker.post("/v1/commands", Order(action=CancelTasks(task_ids=(9,))))
        page = (await asker.get("/v1/actions")).as_a(ActionPage)
        assert [(record.action, record.done) for record in page.rows] == [
            (CancelTasks(task_ids=(9,)), False),
            (PausePool(), True),
        ]
        assert {(record.actor, record.origin) for record in page.rows} == {
            (getpass.getuser(), f"ana@laptop (process {os.getpid()})")
        }
        assert not page.more
        latest = (await asker.get("/v1/actions?limit=1")).as_a(ActionPage)
        assert latest == ActionPage(rows=page.rows[:1], more=True)
        before = (await asker.get(f"/v1/actions?limit=1&before={latest.rows[0].number}")).as_a(ActionPage)
        assert before == ActionPage(rows=page.rows[1:], more=False)
