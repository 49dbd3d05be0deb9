"""Samples that turn on their guest or its agent: what a task then says, and that the machines serve again.

All are run on one served engine, on both machines at a time.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rig.end_to_end import installed, told
from tests.rig.host import GUESTS, RigHost
from tests.rig.trouble import Record, Station

FIGHTS = {
    "reboots": "reboot -f",
    "powers-off": "poweroff -f",
    "fills-the-disk": "dd if=/dev/zero of=/data/full bs=1M; exit 0",
    "prints-20-MB": "yes | head -c 20000000; exit 0",
    "kills-the-agent": "kill -9 $(pidof qemu-ga); sleep 3; exit 0",
}
WATCHED = {"reboots": ("--timeout", "45")}
"""How long a guest is watched that starts anew: longer than that takes."""


@pytest.fixture(scope="module")
def fought(whole_rig: RigHost, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Record]:
    """The task of each fight, when it has ended; and each machine has served once more."""
    folder = tmp_path_factory.mktemp("fights")
    with Station(installed(whole_rig, folder), folder) as station:
        numbers = [station.submit(script, *WATCHED.get(fight, ())) for fight, script in FIGHTS.items()]
        ended = dict(zip(FIGHTS, station.until_all_ended(numbers), strict=True))
        for machine in GUESTS:
            task = station.until_ended(station.submit("exit 0", "--machine", machine))
            assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)
        station.end()
    assert whole_rig.running() == []
    return ended


@pytest.mark.parametrize("fight", FIGHTS)
def test_a_sample_that_fights_is_ended_and_its_machine_serves_the_next(fought: dict[str, Record], fight: str) -> None:
    task = fought[fight]
    assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)


@pytest.mark.parametrize(("fight", "end"), [("reboots", "rebooted"), ("powers-off", "powered_off"), ("prints-20-MB", "exited")])
def test_how_a_sample_that_fights_ended_is_known(fought: dict[str, Record], fight: str, end: str) -> None:
    (run,) = [plugin for plugin in fought[fight]["plugins"] if plugin["name"] == "guest-run"]
    (kept,) = [result for result in run["results"] if result["name"] == "run"]
    assert json.loads(Path(kept["path"]).read_bytes())["end"] == end
