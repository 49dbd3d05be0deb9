"""The product's own command on the rig's machines."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.cli.test_end_to_end import Malbox, records
from tests.rig.host import GUESTS, SNAPSHOT, RigHost

FEW_PLUGINS = '[plugins]\ndisabled = ["digests", "strings", "yara-x"]\n'


def installed(
    rig: RigHost, folder: Path, machines: tuple[str, ...] = GUESTS, more: str = "", plugins: str = FEW_PLUGINS
) -> Malbox:
    """The command, with a configuration for machines of the rig, in a data folder of its own. Plugins of this host, which take the
    processor from the guests, are few unless `plugins` says otherwise."""
    tables = "".join(
        f'\n[[machines]]\nname = "{name}"\nprovider = "libvirt"\nplatform = "linux"\nuri = "{rig.uri}"\nsnapshot = "{SNAPSHOT}"\n'
        'disk_folder = "/data"\nwatch = ["/tmp", "/data"]\n'
        for name in machines
    )
    data = folder / "data"
    data.mkdir()
    (data / "config.toml").write_text(more + plugins + tables)
    return Malbox(data)


def analyzed(malbox: Malbox, sample: Path, *options: str) -> tuple[subprocess.CompletedProcess[bytes], dict[str, Any]]:
    """What became of a sample that was run in a machine: how the command ended, and the last record of the task."""
    ended = malbox("analyze", "--json", "--type", "dynamic", "--platform", "linux", *options, sample)
    tasks = [record for record in records(ended.stdout) if record["record"] == "task"]
    assert tasks, (ended.stdout, ended.stderr)
    return ended, tasks[-1]


def results(malbox: Malbox) -> dict[str, list[Path]]:
    """All files of results that are kept, by name."""
    found: dict[str, list[Path]] = {}
    for path in sorted((malbox.data / "results").rglob("*")):
        if path.is_file():
            found.setdefault(path.name, []).append(path)
    return found


def kept_json(malbox: Malbox, name: str) -> Any:
    """The only result of that name."""
    (path,) = results(malbox)[name]
    return json.loads(path.read_bytes())


def told(record: dict[str, Any]) -> str:
    """A record, for the message of a test that fails."""
    return json.dumps(record, indent=1)
