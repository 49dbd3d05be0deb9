"""Profiles as an operator writes them: `[[profiles]]`, one table a profile."""

from __future__ import annotations

import msgspec

from malbox_tui.config.section import LowerCaseName, PlainName, Seconds, SettingsTable
from malbox_tui.model.profile import Profile


class ProfileSettings(SettingsTable, frozen=True, kw_only=True):
    """[[profiles]]: a named set of plugins with options, for tasks that are given it by name, or whose content is of its kinds. Write
    the table once for each profile."""

    name: PlainName
    """What the profile is called. Each has another name."""
    plugins: tuple[str, ...] = ()
    """Names of the plugins that take part; those whose results they need do too. Empty: all."""
    required: tuple[str, ...] = ()
    """Names of plugins of the profile without which its tasks fail. Empty: as `required` of [plugins] says."""
    kinds: tuple[LowerCaseName, ...] = ()
    """Kinds of content, such as "pe" and "pdf", that it is chosen for where no profile is chosen by hand. A kind has one profile at
    most. `malbox-tui task ID` shows the kind of a sample."""
    timeout_s: Seconds | None = None
    """How long the plugins, and the sample in its machine, may run, in seconds, where a submission asks for no other time. Left out:
    timeout_s of [analysis]."""
    type: LowerCaseName | None = None
    """The task type, such as "static" and "dynamic", of tasks that are not asked to run in a machine anyway. Left out: dynamic where
    the profile has a platform or tags, else as without a profile."""
    platform: LowerCaseName | None = None
    """The platform of the machine that its samples run in, where a submission names no other. Left out: any."""
    tags: tuple[PlainName, ...] = ()
    """Tags that the machine has to have, with those that a submission asks for."""
    options: dict[str, dict[str, str]] = msgspec.field(default_factory=dict)
    """[profiles.options.NAME], below the profile: options of the plugin NAME, in place of those of [plugins.config.NAME]. A plugin that
    is kept ready is started anew whenever the next task has other options."""

    def profile(self) -> Profile:
        """As the engine has it."""
        return Profile(
            name=self.name,
            plugins=self.plugins,
            required=self.required,
            kinds=self.kinds,
            timeout_s=self.timeout_s,
            task_type=self.type,
            platform=self.platform,
            tags=self.tags,
            options=self.options,
        )
