"""Cancels, and kills of the engine, in each stage of a run in a real machine."""

from __future__ import annotations

from pathlib import Path

from tests.rig.end_to_end import installed, told
from tests.rig.host import RigHost
from tests.rig.trouble import Station, frozen, holders

ENDLESS = "sleep 600"
HARMLESS = "exit 0"
LEAVES_MUCH = "dd if=/dev/zero of=/data/much bs=1M count=60; exit 0"
TELLS_A_SECOND_RUN = "test -e /data/was-here && exit 9; touch /data/was-here; sleep 6; exit 0"


def test_a_cancel_in_each_stage_says_where_the_task_was_and_its_machine_serves_again(rig: RigHost, tmp_path: Path) -> None:
    with Station(installed(rig, tmp_path, ("lin-1",)), tmp_path) as station:
        running = station.submit(ENDLESS)
        waiting = station.submit(HARMLESS)
        station.until_stage(running, "running")
        station.ask("cancel", str(waiting))
        assert station.until_ended(waiting)["state"] == "canceled"
        station.ask("cancel", str(running))
        task = station.until_ended(running)
        assert (task["state"], task["ended_by"]) == ("canceled", "user"), told(task)
        assert "running" in task["reason"], told(task)
        station.until_machine("lin-1", "ready")

        with frozen(rig):
            preparing = station.submit(HARMLESS)
            station.until_stage(preparing, "preparing_resources")
            station.ask("cancel", str(preparing))
            task = station.until_ended(preparing)
        assert (task["state"], task["ended_by"]) == ("canceled", "user"), told(task)
        assert "machine" in task["reason"], told(task)
        station.until_machine("lin-1", "ready")

        collecting = station.submit(LEAVES_MUCH)
        station.until_collecting()
        station.ask("cancel", str(collecting))
        task = station.until_ended(collecting)
        assert (task["state"], task["ended_by"]) == ("canceled", "user"), told(task)
        assert "collected" in task["reason"], told(task)

        assert station.until_ended(station.submit(HARMLESS))["state"] == "completed"
        assert holders(station.told)["lin-1"][:3] == [running, preparing, collecting]
        station.end()
    assert rig.running() == []


def test_an_engine_killed_in_each_stage_reverts_the_machine_before_it_serves_and_runs_the_task_again(
    rig: RigHost, tmp_path: Path
) -> None:
    with Station(installed(rig, tmp_path, ("lin-1",)), tmp_path) as station:
        waiting = station.submit(TELLS_A_SECOND_RUN)
        station.kill()
        station.start()
        _serves_anew(station, waiting)

        station.until_machine("lin-1", "ready")
        with frozen(rig):
            preparing = station.submit(TELLS_A_SECOND_RUN)
            station.until_stage(preparing, "preparing_resources")
            station.kill()
        station.start()
        _serves_anew(station, preparing)

        running = station.submit(TELLS_A_SECOND_RUN)
        station.until_stage(running, "running")
        station.kill()
        assert rig.running() == ["lin-1"], "what was running has nobody who would end it"
        station.start()
        _serves_anew(station, running)

        collecting = station.submit(LEAVES_MUCH)
        station.until_collecting()
        station.kill()
        station.start()
        _serves_anew(station, collecting)
        assert not list((station.malbox.data / "results").rglob(".dropped*")), "what was half collected is gone"
        station.end()
    assert rig.running() == []


def test_an_engine_that_was_killed_for_good_leaves_its_machine_to_a_start_that_only_ends(rig: RigHost, tmp_path: Path) -> None:
    with Station(installed(rig, tmp_path, ("lin-1",)), tmp_path) as station:
        running = station.submit(ENDLESS)
        station.until_stage(running, "running")
        station.kill()
        station.start()
        station.end()
    assert rig.running() == []
    (task,) = station.malbox.tasks()
    assert task["state"] == "pending", told(task)


def _serves_anew(station: Station, number: int) -> None:
    task = station.until_ended(number)
    assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)
    (run,) = [plugin for plugin in task["plugins"] if plugin["name"] == "guest-run"]
    assert run["reason"].endswith("status 0."), told(task)
    assert number in holders(station.told)["lin-1"]
