"""Which plugins the engine has: read at its start, and again on request, checked against what its settings say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from malbox_tui.config.profile_rules import check_denied
from malbox_tui.config.settings import Settings
from malbox_tui.model.errors import ConfigError
from malbox_tui.ports import GuestPlugin, PluginInfo, PluginRunner


class PluginRoster:
    """`names`: all plugins, those of the host first. `on_guests` is told of the plugins for guests when they were read again."""

    def __init__(
        self,
        runner: PluginRunner,
        guests: Sequence[GuestPlugin],
        settings: Settings,
        on_guests: Callable[[Sequence[GuestPlugin]], None],
    ) -> None:
        self.names: tuple[str, ...] = ()
        self._hosts: Mapping[str, PluginInfo] = {}
        self._is_read = False
        self._runner = runner
        self._guests = guests
        self._settings = settings
        self._on_guests = on_guests

    async def open(self) -> None:
        """Read them. Raises what the runner does, and `ConfigError` for a plugin that the settings name and that isn't there."""
        self._take(await self._runner.open(), self._guests)
        self._check()

    def follow(self, settings: Settings) -> None:
        """From now on plugins that are read again have to fit these settings."""
        self._settings = settings

    async def know(self) -> None:
        """Read them, if nobody did: an engine at rest has no use for them otherwise. Raises what `open` does."""
        if not self._is_read:
            await self.reload()
            self._check()

    def is_guest(self, name: str) -> bool:
        """Whether one of `names` runs in guests."""
        return name not in self._hosts

    def options_of(self, name: str) -> Mapping[str, str]:
        """The options that one of `names` has, with their values; none for one that runs in guests."""
        return self._hosts[name].options if name in self._hosts else {}

    def host_paths_of(self, name: str) -> frozenset[str]:
        """Those of its options that are paths of this host."""
        return self._hosts[name].host_paths if name in self._hosts else frozenset()

    async def reload(self) -> str:
        """Read them again; what changed, in a sentence. Raises what the runner does; nothing has changed then."""
        read = await self._runner.reload([profile.profile() for profile in self._settings.profiles])
        self._take(read.plugins, read.guests)
        self._on_guests(read.guests)
        changes = ", ".join(read.changes) or "nothing changed"
        return f"The plugins were read again: {changes}. Tasks that begin from now on have them as they are."

    def _take(self, hosts: Sequence[PluginInfo], guests: Sequence[GuestPlugin]) -> None:
        self._is_read = True
        self._hosts = {plugin.name: plugin for plugin in hosts}
        self.names = (*(plugin.name for plugin in hosts), *(plugin.name for plugin in guests))

    def _check(self) -> None:
        check_denied(self._settings)
        required = frozenset(self._settings.plugins.required)
        for group in self._settings.groups():
            where = f"workers ({group.name}): plugin_restrictions"
            for key, names in (("allow", group.plugins_allowed), ("deny", group.plugins_denied)):
                for name in sorted(names.difference(self.names)):
                    known = ", ".join(self.names) or "none"
                    raise ConfigError("configuration", f"{where}.{key}", f"there is no plugin {name!r}; there are {known}.")
            if denied := sorted(required & group.plugins_denied):
                problem = f"{denied[0]!r} is named in plugins.required; take it out of one of them."
                raise ConfigError("configuration", f"{where}.deny", problem)
