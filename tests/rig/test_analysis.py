"""A whole analysis on real machines, by the product's own command."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.rig.end_to_end import analyzed, installed, kept_json, results, told
from tests.rig.host import RigHost

SCRIPT = b"""#!/bin/sh
echo "said $1"
echo dropped >/data/dropped.txt
ping -c 1 -W 1 10.0.2.2 >/dev/null 2>&1
exit 7
"""

PROGRAM = r"""
#include <stdio.h>
int main(int count, char **arguments) {
  FILE *dropped = fopen("/data/from-elf.txt", "w");
  fputs("dropped\n", dropped);
  fclose(dropped);
  printf("elf %s\n", count > 1 ? arguments[1] : "");
  return 7;
}
"""

WATCHER = """[plugin]
name = "watcher"
version = "1.0.0"
type = "guest"
binary = "watcher.sh"

[runtime]
state = "ephemeral"
execution = "parallel"
"""
WATCHES = '#!/bin/sh\nmkdir -p "$1"; echo begun >"$1/begun"; while :; do sleep 1; done\n'

ARP_REQUEST = bytes.fromhex("08060001080006040001")


def test_a_script_runs_in_a_machine_and_what_it_does_is_kept(rig: RigHost, tmp_path: Path) -> None:
    malbox = installed(rig, tmp_path, plugins="")
    sample = tmp_path / "sample.sh"
    sample.write_bytes(SCRIPT)
    ended, task = analyzed(malbox, sample, "--argument", "$HOME 'a b'")
    assert ended.returncode == 0, told(task)
    assert (task["state"], task["ended_by"]) == ("completed", "finished"), told(task)
    run = kept_json(malbox, "run")
    assert (run["end"], run["exit_code"], run["output"]) == ("exited", 7, "said $HOME 'a b'\n")
    (file,) = kept_json(malbox, "files")
    assert (file["path"], file["change"]) == ("/data/dropped.txt", "dropped")
    kept = {name: [path.read_bytes() for path in paths] for name, paths in results(malbox).items()}
    assert kept[file["result"]] == [b"dropped\n"]
    looked_at = {(plugin["name"], plugin["subject"]) for plugin in task["plugins"]}
    assert {("digests", ""), ("digests", "/data/dropped.txt")} <= looked_at, told(task)
    (traffic,) = kept["network.pcap"]
    assert ARP_REQUEST in traffic
    assert any(contents[0].startswith(b"\x89PNG") for name, contents in kept.items() if name.startswith("screenshot-"))
    assert rig.running() == []


@pytest.mark.needs("static-libc")
def test_an_elf_program_runs_in_a_machine_beside_a_guest_plugin_and_the_memory_is_kept(rig: RigHost, tmp_path: Path) -> None:
    malbox = installed(rig, tmp_path, ("lin-2",))
    plugin = malbox.data / "plugins" / "watcher"
    plugin.mkdir(parents=True)
    (plugin / "plugin.toml").write_text(WATCHER)
    (plugin / "watcher.sh").write_text(WATCHES)
    sample = tmp_path / "sample"
    subprocess.run(["gcc", "-static", "-s", "-x", "c", "-o", sample, "-"], input=PROGRAM, text=True, check=True)
    ended, task = analyzed(malbox, sample, "--argument", "given", "--memory")
    assert ended.returncode == 0, told(task)
    assert task["machine"] == "lin-2", told(task)
    assert kept_json(malbox, "run")["output"] == "elf given\n"
    assert [file["path"] for file in kept_json(malbox, "files")] == ["/data/from-elf.txt"]
    assert {plugin["name"]: plugin["status"] for plugin in task["plugins"]}["watcher"] == "completed", told(task)
    kept = results(malbox)
    assert kept["begun"][0].read_bytes() == b"begun\n"
    assert not [process for process in kept_json(malbox, "processes")["new"] if "watcher" in process["command"]]
    with kept["memory.elf"][0].open("rb") as memory:
        assert memory.read(4) == b"\x7fELF"
