"""Plugins that are read again while an engine runs: new, changed and removed ones, beside tasks that began before."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from malbox_tui.model.errors import ManifestError
from malbox_tui.model.events import PluginResultAvailable
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins import condition
from tests.confine.rig import Stop, rig, write_plugin

pytestmark = pytest.mark.slow

SAYS = "ctx.results().push_bytes('says', b'{word}')"


def change(folder: Path, source: str, name: str = "subject") -> None:
    shutil.rmtree(folder / name)
    write_plugin(folder, source, name)


async def test_new_changed_and_removed_plugins_count_from_the_next_task_on(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    write_plugin(plugins, SAYS.format(word="old"))
    write_plugin(plugins, "pass", "leaving")
    async with rig(tmp_path) as subject:
        before = (await subject.findings()).runs
        change(plugins, SAYS.format(word="new, and longer"))
        shutil.rmtree(plugins / "leaving")
        write_plugin(plugins, "pass", "coming")
        assert [run.name for run in (await subject.findings()).runs] == ["leaving", "subject"]
        read = await subject.runner.reload()
        assert read.changes == ("coming 1.2.3 was added", "subject 1.2.3 was changed", "leaving was removed")
        after = (await subject.findings()).runs
        assert [run.name for run in after] == ["coming", "subject"]
        assert await subject.content(before[1], "says") == b"old"
        assert await subject.content(after[1], "says") == b"new, and longer"
        assert (await subject.runner.reload()).changes == ()


async def test_a_task_that_runs_ends_with_the_plugins_that_it_began_with(tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    write_plugin(plugins, "ctx.results().push_bytes('begun', b'')\nwhile ctx.task().sample_bytes() == b'wait': time.sleep(0.01)")
    async with rig(tmp_path) as subject:
        stop = Stop()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(subject.findings(b"wait", stop))
            while not any(isinstance(told, PluginResultAvailable) for told in subject.news):
                await asyncio.sleep(0.01)  # noqa: TID251 - a poll that ends with the run
            change(plugins, SAYS.format(word="new"))
            write_plugin(plugins, "pass", "another")
            await subject.runner.reload()
            assert [run.name for run in (await subject.findings()).runs] == ["another", "subject"]
            stop.give("canceled by you")
        (run,) = running.result().runs
        assert (run.status, [result.name for result in run.results]) == (PluginStatus.CANCELED, ["begun"])
        benches = [*subject.runner._idle, *subject.runner._used]
        assert [bench.generation for bench in benches] == [2]


@pytest.mark.parametrize("fault", ["[plugin", "[plan]\nneeds = ['nothing']\n"])
async def test_what_can_not_be_read_leaves_everything_as_it_was(fault: str, tmp_path: Path) -> None:
    plugins = tmp_path / "plugins"
    write_plugin(plugins, SAYS.format(word="old"))
    async with rig(tmp_path) as subject:
        await subject.run()
        write_plugin(plugins, "pass", "faulty", extra=fault)
        with pytest.raises(ManifestError):
            await subject.runner.reload()
        assert (await subject.run()).status is PluginStatus.COMPLETED
        assert [step.plugin for step in subject.runner.plan.steps] == ["subject"]


async def test_a_plugin_that_was_given_up_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition, "MOST_CRASHES", 2)
    write_plugin(tmp_path / "plugins", "import os\nos._exit(3)\n# run(")
    async with rig(tmp_path) as subject:
        reasons = [(await subject.run()).reason for _ in range(3)]
        assert "given up" in reasons[-1]
        change(tmp_path / "plugins", "pass")
        assert "given up" in (await subject.run()).reason
        await subject.runner.reload()
        assert subject.runner.troubles == ()
        assert (await subject.run()).status is PluginStatus.COMPLETED
