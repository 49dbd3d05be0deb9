"""What the README says of writing plugins: its commands work as printed, its plugin is what they make, and its names are the SDK's."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from malbox_tui.cli.plugin_new import FILES
from malbox_tui.plugins.replies import MAX_REPORT_BYTES, WHOLLY_CHECKED_REPORT_BYTES
from malbox_tui.reports.defang import defanged
from malbox_tui.reports.gathering import MAX_REPORT_BYTES as MAX_SHOWN_BYTES
from malbox_tui.sdk import malbox_plugin_sdk as sdk
from tests.cli.command_line import CommandLine

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()
GUIDE = README.split("\n## Writing a plugin\n")[1].split("\n## ")[0]
(COMMANDS,) = re.findall(r"```sh\n(.*?)```", GUIDE, re.S)
PRINTED = {
    "plugin.toml": re.findall(r"```toml\n(.*?)```", GUIDE, re.S)[0],
    "main.py": re.findall(r"```python\n(.*?)```", GUIDE, re.S)[0],
}
HANDLER, REPORT = (re.findall(r"^\| (`.*?) \| ", table, re.M) for table in GUIDE.split("| --- | --- |")[1:])


@pytest.mark.slow
def test_the_commands_work_as_they_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    malbox = CommandLine(tmp_path, capsys)
    sample = malbox.sample("invoice.exe", "\0" * 100)
    said = []
    for line in COMMANDS.splitlines():
        program, *words = shlex.split(line)
        assert program == "malbox-tui"
        there = {"invoice.exe": sample, "~/.local/share/malbox-tui/plugins/zeros": malbox.data / "plugins" / "zeros"}
        said.append(malbox(*(there.get(word, word) for word in words)))
        assert said[-1].code == 0, line
    made = malbox.data / "plugins" / "zeros"
    assert {file: (made / file).read_text() for file in FILES} == PRINTED
    (task,) = malbox("tasks", "--json").records
    assert "mostly-zeros" in task["verdict"]["labels"]


def test_what_a_handler_is_said_to_have_it_has() -> None:
    words = [name for row in HANDLER for name in re.findall(r"`([^`]+)`", row)]
    owners = {"ctx.task().": sdk.TaskInfo, "ctx.results().": sdk.ResultSink, "ctx.": sdk.Context, "": sdk}
    for word in words:
        owner, prefix = next((owner, prefix) for prefix, owner in owners.items() if word.startswith(prefix))
        assert hasattr(owner, word.removeprefix(prefix).partition("(")[0]), word


def test_the_parts_of_a_report_and_all_its_blocks_are_those_of_the_sdk() -> None:
    parts = [name for row in REPORT for name in re.findall(r"`([a-z]+)`", row)]
    steps = {name for name in vars(sdk.ReportBuilder) if not name.startswith("_")}
    assert set(parts) == steps - {"build", "raw", "display_name"}
    (row,) = (line for line in GUIDE.splitlines() if line.startswith("| `section`"))
    blocks = {name for name in vars(sdk.Block) if not name.startswith("_")} - {"to_json"}
    assert set(re.findall(r"`([a-z]+)`", row.split("|")[2])) == blocks


def test_the_kinds_that_are_said_to_be_defanged_are() -> None:
    told = re.search(r"markup on the screen.*?((?:`\w+`(?:, | and ))+`\w+`) indicators", GUIDE, re.S)
    assert told is not None
    kinds = re.findall(r"`(\w+)`", told[1])
    assert set(kinds) == {"url", "domain", "ipv4", "ipv6", "email"}
    assert all(defanged(kind, "http://1.2") != "http://1.2" for kind in kinds)


def test_the_bounds_are_those_of_the_engine() -> None:
    assert MAX_REPORT_BYTES == MAX_SHOWN_BYTES
    assert f"at most {MAX_REPORT_BYTES // 1024**2} MiB" in GUIDE
    assert f"above {WHOLLY_CHECKED_REPORT_BYTES // 1024} KiB" in GUIDE
