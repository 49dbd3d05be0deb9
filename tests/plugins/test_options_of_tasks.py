"""Options that a task has for a plugin, in place of the plugin's own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from malbox_tui.config.profiles import ProfileSettings
from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.errors import ConfigError
from malbox_tui.plugins.profiles import check_profiles
from malbox_tui.plugins.registry import find_plugins
from malbox_tui.ports import BatchMember, Findings, PluginJob
from tests.confine.rig import Rig, Stop, rig, write_plugin

TELLS = """
import os
import malbox_plugin_sdk as malbox
class Telling(malbox.Plugin):
    def on_start(self, config):
        self.config, self.mark = config, os.urandom(8)
    def on_task(self, ctx):
        ctx.results().push_bytes("depth", self.config["depth"].encode())
        ctx.results().push_bytes("process", self.mark)
    {more}
malbox.run(Telling())
"""
IN_BATCHES = """
    def on_batch(self, ctxs):
        for ctx in ctxs:
            self.on_task(ctx)
            ctx.results().push_bytes("together", str(len(ctxs)).encode())
"""
CONFIG = '[config]\ndepth = "1"\nother = ""\n'
OPTIONS = {"subject": {"depth": "3"}}


def write_teller(folder: Path, more: str = "") -> None:
    write_plugin(folder / "plugins", TELLS.replace("{more}", more.strip()), extra=CONFIG)


def job(number: int, options: Mapping[str, Mapping[str, str]]) -> PluginJob:
    return PluginJob(number, f"token-{number}", f"sample-{number}", options=options)


async def told(subject: Rig, *of: Mapping[str, Mapping[str, str]]) -> list[tuple[str, str]]:
    """What the plugin says of its depth, and in which process, of tasks that come one after the other."""
    found = []
    for number, options in enumerate(of, 1):
        bench = await subject.runner.acquire()
        (bench.inbox / f"sample-{number}").write_bytes(b"sample")
        (run,) = (await bench.run(job(number, options), Stop())).runs
        await subject.runner.release(bench)
        found.append(((await subject.content(run, "depth")).decode(), (await subject.content(run, "process")).hex()))
    return found


@pytest.mark.slow
async def test_a_plugin_is_started_with_them_and_kept_as_long_as_they_are_the_same(tmp_path: Path) -> None:
    write_teller(tmp_path)
    async with rig(tmp_path) as subject:
        (own, a), (first, b), (again, c), (back, d) = await told(subject, {}, OPTIONS, OPTIONS, {})
    assert (own, first, again, back) == ("1", "3", "3", "1")
    assert b == c
    assert len({a, b, d}) == 3


@pytest.mark.slow
async def test_those_of_other_plugins_change_nothing(tmp_path: Path) -> None:
    write_teller(tmp_path)
    async with rig(tmp_path) as subject:
        (_, one), (_, other), (_, same) = await told(subject, {}, {"other": {"depth": "3"}}, {"subject": {"depth": "1"}})
    assert one == other == same


@pytest.mark.slow
async def test_tasks_of_a_batch_are_given_together_where_they_have_the_same(tmp_path: Path) -> None:
    write_teller(tmp_path, IN_BATCHES)
    found: dict[int, Findings] = {}
    async with rig(tmp_path) as subject:
        bench = await subject.runner.acquire()
        members = []
        for number, options in enumerate(({}, OPTIONS, {}, OPTIONS), 1):
            (bench.inbox / f"sample-{number}").write_bytes(b"sample")
            members.append(
                BatchMember(
                    job(number, options), Stop(), lambda _works: None, lambda given, number=number: found.update({number: given})
                )  # type: ignore[misc]
            )
        await bench.run_batch(members)
        said = []
        for number in range(1, 5):
            (run,) = found[number].runs
            said.append((await subject.content(run, "depth"), await subject.content(run, "together")))
    assert said == [(b"1", b"2"), (b"3", b"2"), (b"1", b"2"), (b"3", b"2")]


@pytest.mark.parametrize(
    ("profile", "problem"),
    [
        ({"plugins": ("subjet",)}, r"profiles\[0\]\.plugins: there is no plugin 'subjet'; did you mean 'subject'\?"),
        ({"required": ("gone",)}, r"profiles\[0\]\.required: there is no plugin 'gone'; there are guest, subject"),
        ({"options": {"gone": {}}}, r"profiles\[0\]\.options: there is no plugin 'gone'"),
        ({"options": {"subject": {"dept": "1"}}}, r"options\.subject\.dept: the plugin has no such option; it has depth"),
        ({"options": {"guest": {"depth": "1"}}}, r"options\.guest: it runs in guests, and has no options"),
        ({"kinds": ("pe",)}, r"profiles\[0\]\.kinds: nobody tells kinds, since the plugin file-type is disabled"),
    ],
)
def test_a_profile_can_name_only_what_there_is(profile: dict[str, object], problem: str, tmp_path: Path) -> None:
    write_teller(tmp_path)
    hosts = find_plugins(PluginSettings(), tmp_path / "plugins")
    with pytest.raises(ConfigError, match=problem):
        check_profiles([ProfileSettings(name="p", **profile)], hosts, ["guest"])  # type: ignore[arg-type]


def test_a_profile_of_what_there_is_is_right(tmp_path: Path) -> None:
    write_teller(tmp_path)
    hosts = find_plugins(PluginSettings(), tmp_path / "plugins")
    check_profiles([ProfileSettings(name="p", plugins=("subject", "guest"), options=OPTIONS)], hosts, ["guest"])
