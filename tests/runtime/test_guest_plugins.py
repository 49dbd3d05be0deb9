"""Guest plugins that lie beside host plugins are known to the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import Settings, WorkerSettings
from malbox_tui.config.workers import PluginRestrictions
from malbox_tui.model.commands import ShutdownMode
from malbox_tui.model.errors import ConfigError
from malbox_tui.runtime.assembly import build_engine

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


async def test_a_guest_plugin_is_one_that_groups_may_name(tmp_path: Path) -> None:
    (tmp_path / "plugins" / "watch").mkdir(parents=True)
    (tmp_path / "plugins" / "watch" / "plugin.toml").write_text(MANIFEST)
    (tmp_path / "plugins" / "watch" / "watch.sh").write_text("#!/bin/sh\n")
    await opened_and_closed(tmp_path, tmp_path / "plugins")


async def test_one_that_is_not_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="watch"):
        await opened_and_closed(tmp_path, tmp_path / "plugins")
