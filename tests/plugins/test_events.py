"""Which events reach which plugins, in Malbox's words."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from malbox_tui.model import events as news
from malbox_tui.model.report import PluginStatus
from malbox_tui.model.task import EndedBy
from malbox_tui.plugins.events import event_of
from malbox_tui.sdk.malbox_plugin_sdk.values import EVENT_KINDS
from tests.confine.rig import Rig, rig, write_plugin

LISTENS = """
import malbox_plugin_sdk as malbox
class Subject(malbox.Plugin):
    def __init__(self):
        self.heard = []
    def on_event(self, event):
        self.heard.append([event.kind, event.id, event.source, event.result_name])
    def on_task(self, ctx):
        ctx.results().push(malbox.PluginResult.json("heard", self.heard))
malbox.run(Subject())
"""
ENDED = {"ended_by": EndedBy.FINISHED, "reason": "x"}

TOLD: list[tuple[news.EventBody, list[object]]] = [
    (news.TaskCreated(task_id=7, sha256="0", type="static", priority=1, name="n"), ["TaskCreated", 7, None, None]),
    (news.TaskStarting(task_id=7, worker="w", attempt=1), ["TaskStarting", 7, None, None]),
    (news.TaskCompleted(task_id=7, **ENDED), ["TaskCompleted", 7, None, None]),  # type: ignore[arg-type]
    (news.TaskFailed(task_id=7, **ENDED), ["TaskFailed", 7, None, None]),  # type: ignore[arg-type]
    (news.TaskCanceled(task_id=7, **ENDED), ["TaskCanceled", 7, None, None]),  # type: ignore[arg-type]
    (news.TaskTimedOut(task_id=7, **ENDED), ["TaskTimedOut", 7, None, None]),  # type: ignore[arg-type]
    (news.PluginStarted(task_id=7, plugin="source"), ["PluginStarted", 2, None, None]),
    (
        news.PluginStopped(task_id=7, plugin="source", status=PluginStatus.COMPLETED, seconds=1.0),
        ["PluginStopped", 2, None, None],
    ),
    (
        news.PluginResultAvailable(task_id=7, plugin="source", result_name="r"),
        ["PluginResultAvailable", None, "source", "r"],
    ),
    (news.PluginStarted(task_id=7, plugin="guest-run"), ["SampleStarted", 7, None, None]),
    (
        news.PluginStopped(task_id=7, plugin="guest-run", status=PluginStatus.COMPLETED, seconds=1.0),
        ["SampleStopped", 7, None, None],
    ),
    (news.PluginResultAvailable(task_id=7, plugin="guest-run", result_name="r"), ["SampleResultProduced", 7, None, None]),
    (news.EngineStopping(mode="drain"), ["DaemonShutdown", None, None, None]),
    (news.ConfigReloaded(), ["ConfigReloaded", None, None, None]),
]


def test_each_kind_of_event_is_told_of_some_news() -> None:
    kinds = [event.kind for body, _heard in TOLD if (event := event_of(body, {"source": 2})) is not None]
    assert sorted(kinds) == sorted(EVENT_KINDS)


async def heard(subject: Rig, plugin: str = "listener") -> list[list[object]]:
    """What the plugin heard of what was told since its start; then of the run that asks."""
    import json

    run = next(run for run in (await subject.findings()).runs if run.name == plugin)
    told: list[list[object]] = json.loads(await subject.content(run, "heard"))
    return told


@pytest.mark.slow
async def test_a_plugin_hears_what_it_subscribed_to_in_the_words_of_malbox(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", LISTENS, "listener", extra='[events]\nsubscribe = ["source"]\n')
    write_plugin(tmp_path / "plugins", "pass", "source")
    async with rig(tmp_path) as subject:
        assert await heard(subject) == []
        for body, _heard in TOLD:
            subject.runner.tell(body)
        subject.runner.tell(news.PluginStarted(task_id=7, plugin="somebody-else"))
        subject.runner.tell(news.PluginStarted(task_id=7, plugin="listener"))
        subject.runner.tell(news.PluginProgress(task_id=7, plugin="source", fraction=0.5, message=""))
        assert await heard(subject) == [heard for _body, heard in TOLD]


@pytest.mark.slow
async def test_a_filter_lets_through_what_is_from_the_plugins_that_it_names(tmp_path: Path) -> None:
    extra = '[events]\nsubscribe = ["a", "b"]\n[events.filters.PluginResultAvailable]\nfrom_plugins = ["b"]\n'
    write_plugin(tmp_path / "plugins", LISTENS, "listener", extra=extra)
    async with rig(tmp_path) as subject:
        assert await heard(subject) == []
        for plugin in ("a", "b", "c"):
            subject.runner.tell(news.PluginResultAvailable(task_id=7, plugin=plugin, result_name="r"))
            subject.runner.tell(news.PluginStarted(task_id=7, plugin=plugin))
        assert [(kind, source) for kind, _id, source, _name in await heard(subject)] == [
            ("PluginStarted", None),
            ("PluginResultAvailable", "b"),
            ("PluginStarted", None),
        ]


@pytest.mark.slow
async def test_what_a_plugin_emits_is_from_itself_whatever_it_says(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", LISTENS, "listener", extra='[events]\nsubscribe = ["source"]\n')
    write_plugin(
        tmp_path / "plugins",
        "ctx.emit_event(malbox.Event.plugin_result_available('somebody-else', 'r'))\n"
        "ctx.emit_event(malbox.Event('Nonsense'))\nctx.emit_event(malbox.Event.task_completed(99))",
        "source",
    )
    async with rig(tmp_path) as subject:
        await heard(subject)
        told = await heard(subject)
        for _ in range(3):
            told = await heard(subject)
    assert ["PluginResultAvailable", None, "source", "r"] in told
    assert ["TaskCompleted", 99, None, None] in told
    assert all(kind in ("PluginResultAvailable", "TaskCompleted") for kind, *_rest in told)


@pytest.mark.slow
async def test_a_flood_of_events_holds_up_nothing_and_breaks_no_plugin_that_is_busy(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        import time
        import malbox_plugin_sdk as malbox
        class Subject(malbox.Plugin):
            def on_event(self, event):
                raise ValueError("not mine")
            def on_task(self, ctx):
                if ctx.task().sample_bytes() == b"wait":
                    ctx.results().push_bytes("begun", b"")
                    time.sleep(0.5)
        malbox.run(Subject())
        """,
    )
    async with rig(tmp_path) as subject:
        await subject.run()
        async with asyncio.TaskGroup() as group:
            running = group.create_task(subject.run(b"wait"))
            while not any(isinstance(body, news.PluginResultAvailable) for body in subject.news):
                await asyncio.sleep(0.005)  # noqa: TID251 - a poll that ends with the run
            for _ in range(100_000):
                subject.runner.tell(news.ConfigReloaded())
        assert (running.result().status, running.result().reason) == (PluginStatus.COMPLETED, "")
        assert (await subject.run()).status is PluginStatus.COMPLETED


TALKS = """
    import malbox_plugin_sdk as malbox
    class Subject(malbox.Plugin):
        def on_start(self, config):
            print("started")
        def on_stop(self):
            print("stopped")
        def on_event(self, event):
            print("heard of", event.kind, flush=True)
            ctx = self.ctx
            if event.kind == "ConfigReloaded":
                raise ValueError("not mine")
        def on_task(self, ctx):
            self.ctx = ctx
            print("worked")
            ctx.results().push_bytes("done", b"")
    malbox.run(Subject())
    """


@pytest.mark.slow
async def test_what_is_printed_between_tasks_is_in_the_log_of_the_next_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    write_plugin(tmp_path / "plugins", TALKS)
    async with rig(tmp_path) as subject:
        first = (await subject.content(await subject.run(), "log")).decode()
        assert first == "[printed before this task]\nstarted\n[end of that]\nworked\n"
        subject.runner.tell(news.TaskCompleted(task_id=7, **ENDED))
        subject.runner.tell(news.ConfigReloaded())
        await subject.runner.check_health()  # it answers behind the events
        second = (await subject.content(await subject.run(), "log")).decode()
        before, _, own = second.partition("[end of that]\n")
        assert before.startswith("[printed before this task]\nheard of TaskCompleted\nheard of ConfigReloaded\n")
        assert "ValueError: not mine" in before
        assert own == "worked\n"
        assert (await subject.content(await subject.run(), "log")).decode() == "worked\n"
        subject.runner.tell(news.TaskCompleted(task_id=7, **ENDED))
        await subject.runner.check_health()
    (told,) = [record.getMessage() for record in caplog.records if "printed between tasks" in record.getMessage()]
    assert "heard of TaskCompleted" in told
    assert "stopped" in told


@pytest.mark.slow
async def test_a_flood_between_tasks_is_cut(tmp_path: Path) -> None:
    source = TALKS.replace('print("heard of", event.kind, flush=True)', 'print("x" * 10_000_000)')
    write_plugin(tmp_path / "plugins", source)
    async with rig(tmp_path) as subject:
        await subject.run()
        for _ in range(3):
            subject.runner.tell(news.TaskCompleted(task_id=7, **ENDED))
        await subject.runner.check_health()
        printed = await subject.content(await subject.run(), "log")
        assert len(printed) < 100_000
        assert b"cut here]" in printed
        assert printed.endswith(b"worked\n")
