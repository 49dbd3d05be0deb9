"""Plugins under another Python than the engine's, which the operator names."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from malbox_tui.config.settings import Isolation, PluginSettings
from malbox_tui.model.errors import ConfigError
from malbox_tui.model.report import PluginStatus
from malbox_tui.plugins.registry import find_plugins
from tests.confine.rig import rig, write_plugin

TELLS = """
import json, sys
import mine
facts = {"prefix": sys.prefix, "mine": mine.ANSWER, "ours": "msgspec" in sys.modules}
try:
    import msgspec
    facts["ours"] = True
except ImportError:
    pass
ctx.results().push_json("python", json.dumps(facts).encode())
"""


@pytest.mark.slow
@pytest.mark.parametrize("isolation", [Isolation.AUTO, Isolation.LIMITS])
async def test_a_plugin_runs_under_the_python_that_is_named_and_with_its_packages(isolation: Isolation, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    venv.create(folder, symlinks=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "mine.py").write_text("ANSWER = 42\n")
    write_plugin(tmp_path / "plugins", TELLS)
    write_plugin(tmp_path / "plugins", "ctx.results().push_json('python', b'1')", "usual")
    settings = PluginSettings(interpreters={"subject": str(folder / "bin" / "python")})
    async with rig(tmp_path, isolation, settings) as subject:
        run, usual = (await subject.findings()).runs
        assert (run.status, run.reason, usual.status) == (PluginStatus.COMPLETED, "", PluginStatus.COMPLETED)
        told = await subject.content(run, "python")
    assert told == f'{{"prefix": "{folder}", "mine": 42, "ours": false}}'.encode()


def write_program(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_what_is_no_python_that_can_be_used_is_refused_with_its_key(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass")
    old = write_program(tmp_path, "old", """#!/bin/sh\necho '["/usr", "/usr", [3, 9]]'\n""")
    for path, problem in {
        "python3": "'python3' must be an absolute path",
        "/nowhere/python": "can't be run: No such file or directory",
        str(tmp_path): "can't be run: Permission denied",
        write_program(tmp_path, "true", "#!/bin/sh\nexit 0\n"): "is no Python that works",
        write_program(tmp_path, "false", "#!/bin/sh\nexit 1\n"): "is no Python that works",
        write_program(tmp_path, "liar", "#!/bin/sh\necho '{}'\n"): "is no Python that works",
        old: "is Python 3.9; plugins need 3.11 or newer",
    }.items():
        with pytest.raises(ConfigError) as caught:
            find_plugins(PluginSettings(interpreters={"subject": path}), tmp_path / "plugins", config_file="config.toml")
        assert (caught.value.path, caught.value.key) == ("config.toml", "plugins.interpreters.subject")
        assert problem in caught.value.problem
    with pytest.raises(ConfigError, match="there is no plugin 'other'"):
        find_plugins(PluginSettings(interpreters={"other": sys.executable}), tmp_path / "plugins")
