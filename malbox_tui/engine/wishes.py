"""What submissions ask of plugins, checked against those that there are: what can't be honoured is refused by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Sequence

from malbox_tui.engine.plugin_roster import PluginRoster
from malbox_tui.engine.worker_group import WorkerGroup
from malbox_tui.model.errors import MalboxError, RefusedCommand
from malbox_tui.model.plan import Plan
from malbox_tui.model.plugin_wishes import NO_WISHES, PluginWishes
from malbox_tui.model.sample import visible
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.task import RequirementClass

MOST_OPTIONS = 100
MOST_OPTION_CHARACTERS = 4096


class RefusedWish(RefusedCommand):
    """Something that plugins can't do; the text says which, and why."""


class WishDesk:
    """Reads wishes. `plan` is how the plugins run together, `groups` are the worker groups."""

    def __init__(self, roster: PluginRoster, plan: Callable[[], Plan], groups: Callable[[], Iterable[WorkerGroup]]) -> None:
        self._roster = roster
        self._plan = plan
        self._groups = groups

    async def asked(self, options: SubmissionOptions) -> PluginWishes:
        """What a submission asks of plugins; `options.requires` are those that its tasks begin with. Raises `RefusedWish`."""
        if not options.plugins and not options.plugin_options:
            return NO_WISHES
        try:
            await self._roster.know()
        except MalboxError as error:
            raise RefusedWish(f"The plugins can't be read: {error}") from error
        only = tuple(dict.fromkeys(options.plugins))
        for name in only:
            self._check_name(name, options.requires)
        wishes = PluginWishes(only, self._options(options.plugin_options))
        for name in wishes.options:
            if self._plan().left_out(only, [name]):
                raise RefusedWish(f"The plugin {name} was given options, and doesn't take part: only {', '.join(only)} does.")
        return wishes

    def lost(self, wishes: PluginWishes) -> str | None:
        """What a task asks for that there is no more, a sentence; None: all of it is there."""
        for name in (*wishes.only, *wishes.options):
            if name not in self._roster.names:
                return f"It asks for the plugin {name}, which there is no more."
        for name, options in wishes.options.items():
            for key in options:
                if key not in self._roster.options_of(name):
                    return f"It asks for the option {key} of the plugin {name}, which that has no more."
        return None

    def _check_name(self, name: str, requires: RequirementClass) -> None:
        if name not in self._roster.names:
            raise RefusedWish(f"There is no plugin '{visible(name)}'; {_near(name, self._roster.names)}.")
        if self._roster.is_guest(name) and not requires.needs_machine:
            raise RefusedWish(f"The plugin {name} runs in machines, and a {requires.task_type} task needs none.")
        reasons = [group.kept_out([name]).get(name) for group in self._groups() if group.max and group.takes(requires)]
        if reasons and all(reasons):
            raise RefusedWish(f"The plugin {name} would not run: {reasons[0]}")

    def _options(self, given: Sequence[str]) -> dict[str, dict[str, str]]:
        if len(given) > MOST_OPTIONS:
            raise RefusedWish(f"{len(given)} options of plugins: {MOST_OPTIONS} are the most.")
        options: dict[str, dict[str, str]] = {}
        for written in given:
            name, equals, value = written.partition("=")
            if not equals or not name:
                raise RefusedWish(f"The option '{visible(written)}' is not written as PLUGIN.KEY=VALUE, or KEY=VALUE.")
            plugin, key = self._meant(name)
            _check_value(name, value)
            if key in options.setdefault(plugin, {}):
                raise RefusedWish(f"The option {key} of the plugin {plugin} is given twice.")
            options[plugin][key] = value
        return options

    def _meant(self, name: str) -> tuple[str, str]:
        """The plugin and its option that this names."""
        there = [(plugin, key) for plugin in self._roster.names for key in self._roster.options_of(plugin)]
        meant = [(plugin, key) for plugin, key in there if name in (key, f"{plugin}.{key}")]
        if not meant:
            if (plugin := name.partition(".")[0]) in self._roster.names and self._roster.is_guest(plugin):
                raise RefusedWish(f"The plugin {plugin} runs in machines, and has no options.")
            known = [f"{plugin}.{key}" for plugin, key in there]
            raise RefusedWish(f"No plugin has the option '{visible(name)}'; {_near(name, known, [key for _, key in there])}.")
        if len(meant) > 1:
            each = " or ".join(f"{plugin}.{key}" for plugin, key in meant)
            raise RefusedWish(f"The option {name} is of {len(meant)} plugins; write {each}.")
        plugin, key = meant[0]
        if key in self._roster.host_paths_of(plugin):
            raise RefusedWish(
                f"The option {key} of the plugin {plugin} is a path of the engine's host; only its configuration sets it."
            )
        return plugin, key


def _check_value(name: str, value: str) -> None:
    if len(value) > MOST_OPTION_CHARACTERS:
        raise RefusedWish(f"The option {name} has a value of more than {MOST_OPTION_CHARACTERS} characters.")
    if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
        raise RefusedWish(f"The option {name} has a value that is no text.")


def _near(name: str, known: Sequence[str], short: Sequence[str] = ()) -> str:
    near = difflib.get_close_matches(name, (*known, *short), n=1, cutoff=0.5)
    return f"did you mean {near[0]}" if near else f"there is {', '.join(known) or 'none'}"
