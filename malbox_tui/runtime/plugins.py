"""What the operator can ask of plugins without an engine: which there are, when each would run, and what is wrong with one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.settings import PluginSettings
from malbox_tui.model.errors import MalboxError, ManifestError
from malbox_tui.plugins.entry import syntax_problem
from malbox_tui.plugins.places import all_places, origin_of
from malbox_tui.plugins.registry import FoundPlugin, find_plugins, load, plan_for, survey

__all__ = ["PluginLine", "check_plugin", "list_plugins"]


@dataclass(frozen=True, slots=True)
class PluginLine:
    """One plugin, or something that should be one. `origin`: built-in, folder or package. `when` is when it runs, or why it doesn't;
    `remarks` are sentences; `fault` says what is wrong (empty: nothing), and then the rest may be empty."""

    folder: str
    origin: str
    name: str = ""
    version: str = ""
    description: str = ""
    authors: tuple[str, ...] = ()
    type: str = ""
    state: str = ""
    execution: str = ""
    results: tuple[str, ...] = ()
    when: str = ""
    takes_part: bool = False
    is_required: bool = False
    remarks: tuple[str, ...] = ()
    fault: str = ""


def list_plugins(settings: PluginSettings, folders: DataFolders, config_file: str) -> Iterator[PluginLine]:
    """Every plugin that there is, in the order in which they run. Never raises for what is wrong with one."""
    try:
        places = all_places(folders)
    except ManifestError as fault:
        yield PluginLine("", "package", fault=str(fault))
        return
    found = list(survey(places))
    plugins = [plugin for plugin in found if isinstance(plugin, FoundPlugin)]
    faults = [plugin for plugin in found if isinstance(plugin, ManifestError)]
    when: dict[str, str] = {}
    try:
        when = {step.plugin: str(step) for step in plan_for(find_plugins(settings, *places, config_file=config_file)).steps}
    except MalboxError as fault:
        if str(fault) not in map(str, faults):
            yield PluginLine("", "", fault=str(fault))
    order = {name: number for number, name in enumerate(when)}
    for plugin in sorted(plugins, key=lambda plugin: (order.get(plugin.name, len(order)), plugin.name)):
        yield _line(plugin, settings, folders, when, {other.name for other in plugins})
    for faulty in faults:
        place = Path(faulty.path).parent
        yield PluginLine(str(place), origin_of(place, folders), fault=str(faulty))


def check_plugin(folder: Path, settings: PluginSettings, folders: DataFolders) -> PluginLine:
    """The plugin in a folder, alone and beside those that take part. Raises `ManifestError` with what is wrong with it by itself."""
    plugin = load(folder.absolute())
    is_ours_to_read = not plugin.is_guest and plugin.name not in settings.interpreters
    if is_ours_to_read and (problem := syntax_problem(plugin.folder, plugin.entry)) is not None:
        raise ManifestError(str(folder / "plugin.toml"), "plugin.binary", problem)
    others: tuple[FoundPlugin, ...] = ()
    remarks: list[str] = []
    try:
        own = folder.resolve()
        places = all_places(folders)
        others = tuple(
            other for other in find_plugins(settings, *places, config_file="configuration") if other.folder.resolve() != own
        )
    except MalboxError as fault:
        remarks.append(f"It could not be looked at beside the others: {fault}")
    names = {other.name for other in others}
    if plugin.name in names:
        raise ManifestError(str(folder / "plugin.toml"), "plugin.name", f"{plugin.name!r} is also the name of another plugin")
    when: dict[str, str] = {}
    if not plugin.is_guest:
        when = {step.plugin: str(step) for step in plan_for((*others, plugin)).steps}
    line = _line(plugin, settings, folders, when, names | {plugin.name})
    return replace(line, remarks=(*remarks, *line.remarks))


def _line(
    plugin: FoundPlugin, settings: PluginSettings, folders: DataFolders, when: dict[str, str], known: set[str]
) -> PluginLine:
    identity, runtime = plugin.manifest.plugin, plugin.manifest.runtime
    takes_part = plugin.name not in settings.disabled and (plugin.is_guest or plugin.name in when)
    return PluginLine(
        folder=str(plugin.folder),
        origin=origin_of(plugin.folder, folders),
        name=plugin.name,
        version=plugin.version,
        description=identity.description,
        authors=identity.authors,
        type=identity.type.value,
        state=runtime.state.value,
        execution=runtime.execution.value,
        results=tuple(plugin.manifest.results),
        when=_when(plugin, settings, when),
        takes_part=takes_part,
        is_required=plugin.name in settings.required,
        remarks=tuple(_remarks(plugin, known)),
    )


def _when(plugin: FoundPlugin, settings: PluginSettings, when: dict[str, str]) -> str:
    if plugin.name in settings.disabled:
        return "disabled"
    if not plugin.is_guest:
        return when.get(plugin.name, "not known while something is wrong")
    guests = plugin.manifest.guest
    platforms = ", ".join(guests.platforms) if guests is not None and guests.platforms else "any platform"
    return f"beside the sample, in guests of {platforms}"


def _remarks(plugin: FoundPlugin, known: set[str]) -> Iterator[str]:
    events = plugin.manifest.events
    named = {*events.subscribe, *(name for listed in events.filters.values() for name in listed.from_plugins)}
    for name in sorted(named - known):
        yield f"It wants events of {name}, which is not there."
