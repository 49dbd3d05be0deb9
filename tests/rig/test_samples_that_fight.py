"""Samples that turn on their guest or its agent: what a task then says, and that the machine serves again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig.end_to_end import analyzed, installed, kept_json, told
from tests.rig.host import RigHost

HARMLESS = "exit 0"


@pytest.mark.parametrize(
    ("script", "state", "ended_by"),
    [
        ("poweroff -f", "completed", "finished"),
        ("dd if=/dev/zero of=/data/full bs=1M; exit 0", "completed", "finished"),
        ("yes | head -c 20000000; exit 0", "completed", "finished"),
        ("kill -9 $(pidof qemu-ga); sleep 3; exit 0", "completed", "finished"),
    ],
    ids=["powers-off", "fills-the-disk", "prints-20-MB", "kills-the-agent"],
)
def test_a_sample_that_fights_is_ended_and_its_machine_serves_the_next(
    rig: RigHost, tmp_path: Path, script: str, state: str, ended_by: str
) -> None:
    malbox = installed(rig, tmp_path, ("lin-1",))
    for content, expected in ((script, (state, ended_by)), (HARMLESS, ("completed", "finished"))):
        sample = tmp_path / "sample.sh"
        sample.write_text(f"#!/bin/sh\n{content}\n")
        _ended, task = analyzed(malbox, sample)
        assert (task["state"], task["ended_by"]) == expected, told(task)
    assert rig.running() == []


def test_a_guest_that_starts_anew_is_watched_until_the_time_is_over(rig: RigHost, tmp_path: Path) -> None:
    malbox = installed(rig, tmp_path, ("lin-1",))
    sample = tmp_path / "sample.sh"
    sample.write_text("#!/bin/sh\nreboot -f\n")
    _ended, task = analyzed(malbox, sample, "--timeout", "20")
    assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)
    assert kept_json(malbox, "run")["end"] == "rebooted"
    assert rig.running() == []
