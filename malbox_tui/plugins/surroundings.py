"""What all plugins of a runner share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from malbox_tui.config.settings import PluginSettings
from malbox_tui.confine.work import Walls
from malbox_tui.model.events import EventBody
from malbox_tui.model.plan import Plan
from malbox_tui.model.report import ResultRef
from malbox_tui.plugins.condition import Condition
from malbox_tui.plugins.floor import Floor
from malbox_tui.plugins.manifest import ResultDeclaration
from malbox_tui.plugins.replies import Emitted
from malbox_tui.ports import ResultStore


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`on_news` is told of starts, ends and results of plugins, on the loop's thread, `on_event` of events that a plugin emitted.

    `plan` and `conditions` (by name) are those of the plugins, `results_declared` (by plugin and name) what their manifests say of
    their results, `floor` is where they get leave to work.
    """

    walls: Walls
    settings: PluginSettings
    cancel_grace_s: float
    flush_grace_s: float
    results: ResultStore
    on_news: Callable[[EventBody], None]
    plan: Plan
    conditions: Mapping[str, Condition]
    floor: Floor
    results_declared: Mapping[str, Mapping[str, ResultDeclaration]] = field(default_factory=dict)
    on_event: Callable[[str, Emitted], None] = lambda plugin, event: None

    def declared(self, plugin: str, result: ResultRef) -> ResultRef:
        """The result with what its plugin's manifest says of it."""
        said = self.results_declared.get(plugin, {}).get(result.name)
        if said is None:
            return result
        return msgspec.structs.replace(
            result, title=said.display_name or "", render=said.render or "", is_for_people=said.user_visible
        )

    def grace_s(self, stop_reason: str) -> float:
        """How long a plugin may go on after a stop: longer when its time is over, for then what it has is wanted."""
        return self.flush_grace_s if stop_reason == "timeout" else self.cancel_grace_s
