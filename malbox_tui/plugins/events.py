"""Events for plugins: what of the engine's news reaches which of them, in Malbox's words.

1. System events and those of tasks and samples reach every plugin that has `on_event`; those about a plugin only plugins that subscribe
   to it, or name it in a filter. A filter holds its kind of event back unless a plugin that it names is the source.
2. They reach processes that live at the moment. One that doesn't read them misses them; nothing waits for it.
3. What a plugin emits is from that plugin, whatever it says of its source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from malbox_tui.model import events as news
from malbox_tui.model.report import GUEST_RUN
from malbox_tui.plugins.registry import FoundPlugin
from malbox_tui.plugins.replies import Emitted
from malbox_tui.sdk.malbox_plugin_sdk.values import EVENT_KINDS

_OF_TASKS: Mapping[type, str] = {
    news.TaskCreated: "TaskCreated",
    news.TaskStarting: "TaskStarting",
    news.TaskCompleted: "TaskCompleted",
    news.TaskFailed: "TaskFailed",
    news.TaskCanceled: "TaskCanceled",
    news.TaskTimedOut: "TaskTimedOut",
}
_OF_SYSTEM: Mapping[type, str] = {news.EngineStopping: "DaemonShutdown", news.ConfigReloaded: "ConfigReloaded"}
_OF_PLUGINS: Mapping[type, str] = {news.PluginStarted: "PluginStarted", news.PluginStopped: "PluginStopped"}
_OF_SAMPLES: Mapping[type, str] = {news.PluginStarted: "SampleStarted", news.PluginStopped: "SampleStopped"}


@dataclass(frozen=True, slots=True)
class PluginEvent:
    """An event as a plugin gets it; `source` is the plugin that it is about, empty: none."""

    kind: str
    id: int | None = None
    source: str = ""
    result_name: str | None = None

    def frame(self) -> dict[str, Any]:
        """For the wire. Only one kind names its source there."""
        fields = {"event": self.kind, "id": self.id, "result_name": self.result_name}
        named = {"source": self.source} if self.kind == "PluginResultAvailable" else {}
        return {"kind": "event", **{key: value for key, value in fields.items() if value is not None}, **named}


def event_of(body: news.EventBody, numbers: Mapping[str, int]) -> PluginEvent | None:
    """What plugins are told; None: nothing. `numbers` are the ids of plugins by their names."""
    kind = type(body)
    if (name := _OF_TASKS.get(kind)) is not None:
        return PluginEvent(name, getattr(body, "task_id"))  # noqa: B009 - all of them have it
    if (name := _OF_SYSTEM.get(kind)) is not None:
        return PluginEvent(name)
    if isinstance(body, news.PluginResultAvailable):
        if body.plugin == GUEST_RUN:
            return PluginEvent("SampleResultProduced", body.task_id)
        return PluginEvent("PluginResultAvailable", source=body.plugin, result_name=body.result_name)
    if isinstance(body, news.PluginStarted | news.PluginStopped):
        if body.plugin == GUEST_RUN:
            return PluginEvent(_OF_SAMPLES[kind], body.task_id)
        return PluginEvent(_OF_PLUGINS[kind], numbers.get(body.plugin), source=body.plugin)
    return None


def emitted(plugin: str, said: Emitted) -> PluginEvent | None:
    """The event that a plugin emitted; None for one of a kind that there isn't."""
    return PluginEvent(said.event, said.id, plugin, said.result_name) if said.event in EVENT_KINDS else None


def wants(plugin: FoundPlugin, event: PluginEvent) -> bool:
    """Whether this one is to be told."""
    events = plugin.manifest.events
    if event.source == plugin.name:
        return False
    listed = events.filters.get(event.kind)
    if listed is not None and listed.from_plugins:
        return event.source in listed.from_plugins
    return not event.source or event.source in events.subscribe


def deliver(event: PluginEvent, seats: Iterable[tuple[FoundPlugin, Callable[[dict[str, Any]], None]]]) -> None:
    """Hand it to all that want it."""
    frame = event.frame()
    for plugin, take in seats:
        if wants(plugin, event):
            take(frame)


def numbers_of(plugins: Sequence[FoundPlugin]) -> dict[str, int]:
    """The ids of plugins in events, by their names."""
    return {plugin.name: number for number, plugin in enumerate(plugins, 1)}
