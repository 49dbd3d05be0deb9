"""Plugins that need what others give, or content of a kind: when they run, what they get, and why they are skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.errors import ManifestError
from malbox_tui.model.report import Identification, PluginRun, PluginStatus
from malbox_tui.ports import PluginJob
from tests.confine.rig import Rig, Stop, rig, write_plugin

pytestmark = pytest.mark.slow

GIVES = '[plan]\ngives = ["unpacked"]\n[results.unpacked]\n'
NEEDS = '[plan]\nneeds = ["unpacked"]\n'
READS = "ctx.results().push_bytes('read', ctx.task().given['unpacked'].read_bytes())"
LISTS = "ctx.results().push_json('there', str(len(os.listdir(ctx.task().sample_path.parent))).encode())"
TELLS_KIND = "ctx.results().push_json('identification', b'{\"kind\": \"%s\"}' % ctx.task().sample_bytes())"


def write_pair(folder: Path, giver: str, needing: str = READS) -> None:
    write_plugin(folder, giver, "unpacker", extra=GIVES)
    write_plugin(folder, needing, "a-scanner", extra=NEEDS)


def by_name(runs: tuple[PluginRun, ...]) -> dict[str, PluginRun]:
    return {run.name: run for run in runs}


async def runs_of(subject: Rig, job: PluginJob, sample: bytes = b"sample") -> dict[str, PluginRun]:
    bench = await subject.runner.acquire()
    (bench.inbox / job.sample_name).write_bytes(sample)
    try:
        return by_name((await bench.run(job, Stop())).runs)
    finally:
        await subject.runner.release(bench)


async def test_what_one_plugin_gives_is_read_by_the_other(tmp_path: Path) -> None:
    write_pair(tmp_path / "plugins", "ctx.results().push_bytes('unpacked', ctx.task().sample_bytes()[::-1])")
    async with rig(tmp_path) as subject:
        for sample in (b"abc", b"xyz"):
            run = by_name((await subject.findings(sample)).runs)["a-scanner"]
            assert (run.status, run.reason) == (PluginStatus.COMPLETED, "")
            assert await subject.content(run, "read") == sample[::-1]


@pytest.mark.parametrize(
    ("giver", "reason"),
    [
        ("pass", "it needs unpacked, and unpacker found none"),
        ("raise ValueError('broken')", "it needs unpacked, and unpacker failed"),
        ("os._exit(1)", "it needs unpacked, and unpacker failed"),
    ],
)
async def test_without_what_it_needs_a_plugin_is_skipped_with_the_reason(giver: str, reason: str, tmp_path: Path) -> None:
    write_pair(tmp_path / "plugins", giver)
    async with rig(tmp_path) as subject:
        run = by_name((await subject.findings()).runs)["a-scanner"]
    assert (run.status, run.reason) == (PluginStatus.SKIPPED, reason)


async def test_a_giver_that_is_kept_out_is_named(tmp_path: Path) -> None:
    write_pair(tmp_path / "plugins", "pass")
    async with rig(tmp_path) as subject:
        runs = await runs_of(subject, PluginJob(1, "token", "sample", kept_out={"unpacker": "The group denies it."}))
    assert runs["a-scanner"].reason == "it needs unpacked, and unpacker does not take part"


async def test_a_plugin_for_certain_kinds_is_skipped_for_others(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", TELLS_KIND, "file-type")
    write_plugin(tmp_path / "plugins", "pass", "for-pe", extra='[plan]\nkinds = ["pe", "elf"]\n')
    async with rig(tmp_path) as subject:
        fitting = by_name((await subject.findings(b"pe")).runs)["for-pe"]
        other = by_name((await subject.findings(b"pdf")).runs)["for-pe"]
        broken = by_name((await subject.findings(b'"')).runs)["for-pe"]
    assert (fitting.status, fitting.reason) == (PluginStatus.COMPLETED, "")
    assert (other.status, other.reason) == (PluginStatus.SKIPPED, "it is for pe, elf, and this is pdf")
    assert broken.reason == "it is for pe, elf, and what this is, is not known: file-type failed"


async def test_a_kind_that_was_known_before_counts_where_nobody_tells_it(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", "pass", "for-pe", extra='[plan]\nkinds = ["pe"]\n')
    async with rig(tmp_path) as subject:
        known = await runs_of(subject, PluginJob(1, "token", "sample", identification=Identification("pe")))
        unknown = await runs_of(subject, PluginJob(2, "token", "sample"))
    assert known["for-pe"].status is PluginStatus.COMPLETED
    assert unknown["for-pe"].reason == "it is for pe, and what this is, is not known: no plugin tells kinds"


async def test_plugins_that_cannot_be_planned_are_refused_with_their_names(tmp_path: Path) -> None:
    write_pair(tmp_path / "plugins", "pass")
    with pytest.raises(ManifestError, match=r"a-scanner/plugin.toml: plan.needs: no plugin that takes part gives 'unpacked'"):
        async with rig(tmp_path, plugins=PluginSettings(disabled=("unpacker",))):
            pass
    write_plugin(tmp_path / "plugins", "pass", "other", extra=GIVES)
    with pytest.raises(ManifestError, match=r"plan.gives: 'unpacked' is given by \S+ too; disable all but one"):
        async with rig(tmp_path):
            pass


async def test_what_was_given_is_out_of_the_inbox_for_the_next_task(tmp_path: Path) -> None:
    write_pair(
        tmp_path / "plugins",
        "ctx.results().push_bytes('unpacked', b'x')",
        LISTS,
    )
    async with rig(tmp_path) as subject:
        counts = [await subject.content(by_name((await subject.findings()).runs)["a-scanner"], "there") for _ in range(3)]
    assert counts == [b"2"] * 3
