"""Guest plugins that lie beside host plugins, or in the data folder, are known to the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.settings import Settings, WorkerSettings
from malbox_tui.config.workers import PluginRestrictions
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import ConfigError
from malbox_tui.runtime.assembly import build_engine
from malbox_tui.runtime.diagnosis import Health, diagnose

MANIFEST = """
[plugin]
name = "watch"
version = "1.0.0"
description = "Watches."
type = "guest"
binary = "watch.sh"
[runtime]
state = "ephemeral"
execution = "parallel"
"""


async def opened_and_closed(folder: Path, plugins: Path) -> None:
    """An engine with a worker group that takes the plugin `watch` and no other."""
    group = WorkerSettings(name="w", plugin_restrictions=PluginRestrictions(allow=("watch",)))
    folders = DataFolders.under(folder / "data")
    folders.create()
    engine = build_engine(Settings(workers=(group,)), folders, plugins)
    await engine.run(lambda: engine.stop(ShutdownMode.GIVE_BACK))


def write_watch(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "plugin.toml").write_text(MANIFEST)
    (folder / "watch.sh").write_text("#!/bin/sh\n")


async def test_a_guest_plugin_is_one_that_groups_may_name(tmp_path: Path) -> None:
    write_watch(tmp_path / "plugins" / "watch")
    await opened_and_closed(tmp_path, tmp_path / "plugins")


async def test_one_in_the_data_folder_takes_part(tmp_path: Path) -> None:
    write_watch(tmp_path / "data" / "plugins" / "watch")
    await opened_and_closed(tmp_path, tmp_path / "plugins")


def test_one_in_the_data_folder_is_told_by_doctor(tmp_path: Path) -> None:
    write_watch(tmp_path / "data" / "plugins" / "watch")
    folders = DataFolders.under(tmp_path / "data")
    (found,) = [told for told in diagnose(folders, ConfigSource.chosen(None, folders)) if told.what == "plugins"]
    assert found.health is Health.OK
    assert "watch 1.0.0 (in guests)" in found.detail


async def test_one_that_is_not_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="watch"):
        await opened_and_closed(tmp_path, tmp_path / "plugins")
