"""Samples that take the place of their guest's agent, or leave it silent: each costs its own task alone."""

from __future__ import annotations

from pathlib import Path

from tests.rig.end_to_end import installed, told
from tests.rig.host import RigHost
from tests.rig.trouble import Station

SILENCE_S = 3

TAKES_THE_LINE = r"""
agent=$(pidof qemu-ga)
line=$(tr '\0' '\n' </proc/$agent/cmdline | grep -A1 '^-p$' | tail -n 1)
kill -9 $agent
until (: 3<>"$line") 2>/dev/null; do :; done
exec 3<>"$line"
"""
GARBAGE = "while :; do echo 'no JSON'; done >&3"
TOO_MUCH = r"""while :; do printf '{"return":"'; yes | tr -d '\n' | head -c 20000000; echo '"}'; sleep 1; done >&3"""
BYTE_BY_BYTE = """while :; do for byte in '{' '"' a '"' : 7 '}'; do printf %s $byte; sleep 0.1; done; done >&3"""
LIES = {
    "nothing at all": "kill -STOP $(pidof qemu-ga); sleep 600",
    "garbage": f"{TAKES_THE_LINE}{GARBAGE}",
    "20 MB": f"{TAKES_THE_LINE}{TOO_MUCH}",
    "byte by byte": f"{TAKES_THE_LINE}{BYTE_BY_BYTE}",
}
"""What the agent answers → the sample that has it do so."""


def test_a_guest_whose_agent_answers_nothing_that_makes_sense_is_lost_and_its_machine_serves_the_next(
    rig: RigHost, tmp_path: Path
) -> None:
    malbox = installed(rig, tmp_path, more=f"[machinery]\nsilence_timeout_s = {SILENCE_S}\n")
    with Station(malbox, tmp_path) as station:
        tasks = station.until_all_ended([station.submit(script) for script in LIES.values()])
        for answer, task in zip(LIES, tasks, strict=True):
            assert (task["state"], task["ended_by"]) == ("failed", "guest_lost"), (answer, told(task))
            assert "The guest was lost" in task["reason"], (answer, told(task))
        for machine in ("lin-1", "lin-2"):
            task = station.until_ended(station.submit("exit 0", "--machine", machine))
            assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)
        station.end()
    assert rig.running() == []
