"""Which plugins the engine has: read at its start, and again on request, checked against what its settings say of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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

    async def reload(self) -> str:
        """Read them again; what changed, in a sentence. Raises what the runner does; nothing has changed then."""
        read = await self._runner.reload([profile.profile() for profile in self._settings.profiles])
        self._take(read.plugins, read.guests)
        self._on_guests(read.guests)
        changes = ", ".join(read.changes) or "nothing changed"
        return f"The plugins were read again: {changes}. Tasks that begin from now on have them as they are."

    def _take(self, hosts: Sequence[PluginInfo], guests: Sequence[GuestPlugin]) -> None:
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
