"""A machine that does not come up for its task in time."""

from __future__ import annotations

from pathlib import Path

from tests.rig.end_to_end import installed, told
from tests.rig.host import RigHost
from tests.rig.trouble import Station

START_S = 18
"""How long a machine may take to come up: less than libvirt takes to end one that stands still, more than it takes to bring one up."""


def test_a_task_whose_machine_is_not_up_in_time_runs_on_another_and_the_first_is_brought_back(
    rig: RigHost, tmp_path: Path
) -> None:
    malbox = installed(rig, tmp_path, more=f"[machinery]\nstart_timeout_s = {START_S}\n")
    with Station(malbox, tmp_path) as station:
        for machine in ("lin-1", "lin-2"):
            station.until_machine(machine, "ready")
        rig.suspend_guest("lin-1")
        task = station.until_ended(station.submit("exit 0"))
        assert (task["state"], task["machine"]) == ("completed", "lin-2"), told(task)
        said = [
            event["reason"] for event in station.told if event.get("machine") == "lin-1" and event.get("state") == "reverting"
        ]
        assert f"it was not up and answering within {START_S} s" in said, said
        station.until_machine("lin-1", "ready")
        station.end()
    assert rig.running() == []
