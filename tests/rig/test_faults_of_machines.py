"""A daemon of libvirt that dies or stands still, machines that die or lose their snapshot, samples that leave nothing of their guest.

All are run on one served engine, so that the machines are brought up once; each leaves them as it found them.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cli.test_end_to_end import records
from tests.rig.end_to_end import installed, told
from tests.rig.host import RigHost
from tests.rig.trouble import Record, Station, frozen, holders

ON_FIRST, ON_SECOND = ("--machine", "lin-1"), ("--machine", "lin-2")
HARMLESS = "exit 0"
ENDLESS = "sleep 600"
TAKES_A_WHILE = "echo begun >/data/begun; sleep 5; exit 7"
STOPS_ITS_AGENT = "kill -STOP $(pidof qemu-ga); sleep 600"
FORK_BOMB = "bomb() { bomb | bomb & }; bomb; sleep 600"
FROZEN_S = 20.0
MANY = 12


@pytest.fixture(scope="module")
def rig(whole_rig: RigHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RigHost]:
    """Of all tests here; in the end none of its machines is running."""
    yield whole_rig
    assert whole_rig.running() == []


@pytest.fixture(scope="module")
def station(rig: RigHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Station]:
    """Serves both machines, of which the second is for x64 as well."""
    folder = tmp_path_factory.mktemp("station")
    malbox = installed(rig, folder, more="[general]\nmin_workers = 4\nmax_workers = 4\n")
    with (malbox.data / "config.toml").open("a") as config:
        config.write('tags = ["x64"]\n')
    with Station(malbox, folder) as station:
        yield station
        station.end()


def test_a_run_goes_on_when_the_daemon_is_killed_and_starts_anew(rig: RigHost, station: Station) -> None:
    number = station.submit(TAKES_A_WHILE, *ON_FIRST)
    station.until_stage(number, "running")
    rig.kill_daemon()
    rig.start_daemon()
    has_its_results(station, number)


def test_a_run_goes_on_when_the_daemon_stands_still_for_a_while(rig: RigHost, station: Station) -> None:
    number = station.submit(TAKES_A_WHILE, *ON_FIRST)
    station.until_stage(number, "running")
    with frozen(rig):
        station.goes_on_for(number, FROZEN_S)
    has_its_results(station, number)


def test_a_machine_whose_process_is_killed_has_lost_its_guest_and_serves_the_next_task(rig: RigHost, station: Station) -> None:
    number = station.submit(ENDLESS, *ON_FIRST)
    station.until_stage(number, "running")
    rig.kill_guest("lin-1")
    task = station.until_ended(number)
    assert (task["state"], task["ended_by"]) == ("failed", "guest_lost"), told(task)
    assert "The guest was lost: the hypervisor's process of the machine died" in task["reason"], told(task)
    completes(station, *ON_FIRST)


def test_a_guest_whose_agent_is_stopped_for_good_costs_its_task_alone(station: Station) -> None:
    number = station.submit(STOPS_ITS_AGENT, *ON_SECOND, "--timeout", "5")
    task = station.until_ended(number)
    assert task["state"] == "timed_out", told(task)
    assert "not all of it was collected" in run_of(task)["reason"], told(task)
    completes(station, *ON_SECOND)


def test_a_machine_that_loses_its_snapshot_is_missing_until_that_is_made_again_and_another_serves(
    rig: RigHost, station: Station
) -> None:
    rig.delete_snapshot("lin-1")
    try:
        assert completes(station, *ON_FIRST)["machine"] == "lin-1", "it was proven clean before"
        said = station.until_machine("lin-1", "missing")
        assert "it has no snapshot 'clean'" in said["reason"], said
        assert "virsh" in said["reason"], said
        assert completes(station)["machine"] == "lin-2"
        rig.lay_disk("lin-1")
        rig.take_snapshot("lin-1")
        station.ask("machines", "probe", "lin-1")
        station.until_machine("lin-1", "ready")
        assert completes(station, *ON_FIRST)["machine"] == "lin-1"
    finally:
        if not rig.has_snapshot("lin-1"):
            rig.lay_disk("lin-1")
            rig.take_snapshot("lin-1")


def test_a_machine_whose_reverts_fail_is_out_of_service_with_the_reason_and_another_serves(
    rig: RigHost, station: Station
) -> None:
    completes(station, *ON_FIRST)
    station.until_machine("lin-1", "ready")
    with rig.unreadable_disk("lin-1"):
        completes(station, *ON_FIRST)
        said = station.until_machine("lin-1", "quarantined")
        assert "it could not be reverted to 'clean'" in said["reason"], said
        assert completes(station)["machine"] == "lin-2"
    station.ask("machines", "probe", "lin-1")
    station.until_machine("lin-1", "ready")
    completes(station, *ON_FIRST)


def test_a_machine_that_stands_still_is_ended_all_the_same_when_its_task_is_canceled(rig: RigHost, station: Station) -> None:
    number = station.submit(ENDLESS, *ON_FIRST)
    station.until_stage(number, "running")
    rig.suspend_guest("lin-1")
    station.ask("cancel", str(number))
    task = station.until_ended(number)
    assert (task["state"], task["ended_by"]) == ("canceled", "user"), told(task)
    station.until_machine("lin-1", "ready")
    completes(station, *ON_FIRST)


def test_two_tasks_for_one_machine_run_one_after_the_other(station: Station) -> None:
    numbers = station.submit_many(["sleep 2", "sleep 2 # another"], *ON_FIRST)
    assert [task["state"] for task in station.until_all_ended(numbers)] == ["completed", "completed"]
    held = [number for number in holders(station.told)["lin-1"] if number in numbers]
    assert sorted(held) == numbers


def test_many_tasks_never_share_one_of_two_machines_and_a_fork_bomb_takes_neither_down(station: Station) -> None:
    bomb = station.submit(FORK_BOMB, "--timeout", "5")
    numbers = station.submit_many([f"exit 0 # {number}" for number in range(MANY)])
    tasks = station.until_all_ended([bomb, *numbers])
    for task in tasks[1:]:
        assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)
    assert tasks[0]["state"] in ("timed_out", "failed"), told(tasks[0])
    held = holders(station.told)
    assert sorted(number for each in held.values() for number in each if number >= bomb) == [bomb, *numbers]
    for machine in ("lin-1", "lin-2"):
        assert max(held[machine]) >= bomb, f"{machine} did nothing"
        assert completes(station, "--machine", machine)["machine"] == machine


@pytest.mark.parametrize(
    ("wanted", "missing"),
    [(("--platform", "windows"), "windows"), (("--platform", "linux", "--tag", "x64", "--tag", "office"), "office")],
    ids=["platform", "tag"],
)
def test_what_no_machine_is_for_is_refused_with_what_is_missing(station: Station, wanted: tuple[str, ...], missing: str) -> None:
    sample = station.sample(HARMLESS)
    said = station.malbox("submit", "--json", "--type", "dynamic", *wanted, sample)
    assert said.returncode != 0
    (refused,) = records(said.stdout)
    assert refused["record"] == "refused", refused
    assert missing in refused["reason"], refused


def test_what_no_machine_is_for_is_held_if_that_is_wanted(station: Station) -> None:
    said = station.malbox("submit", "--json", "--type", "dynamic", "--platform", "windows", "--hold", station.sample(HARMLESS))
    assert said.returncode == 0, said
    (accepted,) = records(said.stdout)
    task = station.task(accepted["task_id"])
    assert task["state"] == "pending", told(task)
    station.ask("cancel", str(accepted["task_id"]))


def completes(station: Station, *options: str) -> Record:
    """A task that does no harm, when it has ended."""
    task = station.until_ended(station.submit(HARMLESS, *options))
    assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)
    return task


def run_of(task: Record) -> Record:
    """What is told of the run in the guest."""
    (run,) = [plugin for plugin in task["plugins"] if plugin["name"] == "guest-run"]
    return dict(run)


def has_its_results(station: Station, number: int) -> None:
    """Of the task that `TAKES_A_WHILE`."""
    task = station.until_ended(number)
    assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)
    run = run_of(task)
    assert "exit status 7" in run["reason"], told(task)
    assert {"run", "files", "dropped-0001"} <= {result["name"] for result in run["results"]}, told(task)
