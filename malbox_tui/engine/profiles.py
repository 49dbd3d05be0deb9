"""The profiles of a configuration, and which of them a task gets: the one chosen by hand, else the one for the kind of its content,
else the default. What a submission or a person chose is never chosen again."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

import msgspec

from malbox_tui.config.settings import Settings
from malbox_tui.model.errors import RefusedCommand
from malbox_tui.model.overview import ProfileView
from malbox_tui.model.profile import Profile, Usual, timeout_of, with_profile
from malbox_tui.model.report import Identification
from malbox_tui.model.sample import visible
from malbox_tui.model.submission import SubmissionOptions
from malbox_tui.model.suggestion import Suggestion, suggestion_for
from malbox_tui.model.task import ChosenBy, ChosenProfile, RequirementClass, Task


class UnknownProfile(RefusedCommand):
    """There is none of this name."""


class Profiles:
    """Looks profiles up. `unserviceable` says why no task of a class could be served, None: one could; `plugins` names those that
    there are."""

    def __init__(
        self,
        settings: Settings,
        unserviceable: Callable[[RequirementClass], str | None],
        plugins: Callable[[], Sequence[str]],
    ) -> None:
        self.unserviceable = unserviceable
        self.plugins = plugins
        self.reload(settings)

    def reload(self, settings: Settings) -> None:
        """From now on there are these, and this is usual. What tasks were asked by the former ones stays with them; which plugins they
        have follows when they begin."""
        self._by_name = {profile.name: profile.profile() for profile in settings.profiles}
        self._by_kind = {kind: profile for profile in self._by_name.values() for kind in profile.kinds}
        self._default = settings.analysis.profile
        self._usual = Usual(settings.analysis.timeout_s, settings.analysis.enforce_timeout)

    @property
    def views(self) -> tuple[ProfileView, ...]:
        """All of them, in the order of the configuration."""
        return tuple(
            ProfileView(name=one.name, about=str(one), kinds=one.kinds, is_default=one.name == self._default)
            for one in self._by_name.values()
        )

    def named(self, name: str) -> Profile:
        """Raises `UnknownProfile`."""
        if (profile := self._by_name.get(name)) is None:
            near = difflib.get_close_matches(name, self._by_name, n=1, cutoff=0.5) or sorted(self._by_name)
            known = "did you mean" if len(near) == 1 and len(self._by_name) > 1 else "there is"
            hint = f"{known} {', '.join(near)}" if near else "the configuration has none"
            raise UnknownProfile(f"There is no profile {visible(name)!r}; {hint}.")
        return profile

    def of(self, task: Task) -> Profile | None:
        """That of a task; None: it has none. Raises `UnknownProfile` when it has one that there is no more."""
        return None if task.profile is None or not task.profile.name else self.named(task.profile.name)

    def asked(self, options: SubmissionOptions) -> tuple[SubmissionOptions, ChosenProfile | None]:
        """What comes of a submission with the profile that it names, or with the default one; and the choice, None where there are no
        profiles. Raises `UnknownProfile`."""
        if not self._by_name and not options.profile:
            return options, None
        name, by = (options.profile, ChosenBy.HAND) if options.profile else (self._default, ChosenBy.DEFAULT)
        profile = self.named(name) if name else None
        chosen = ChosenProfile(
            name=name,
            by=by,
            timeout_s=options.timeout_s,
            enforce_timeout=options.enforce_timeout,
            requires=options.requires,
            stays_static=options.stays_static,
        )
        if profile is None:
            return options, chosen
        timeout_s = timeout_of(chosen, profile, self._usual.timeout_s)
        requires = profile.requires(options.requires, stays_static=options.stays_static)
        return msgspec.structs.replace(options, timeout_s=timeout_s, requires=requires), chosen

    @property
    def there_are(self) -> bool:
        """Whether there are any."""
        return bool(self._by_name)

    def suggestion(self, found: Identification | None) -> Suggestion:
        """The one that a content would best have."""
        return suggestion_for(found, tuple(self._by_name.values()), self._default)

    def asks_for_kind(self, task: Task) -> bool:
        """Whether the kind of its content may decide on its profile."""
        return bool(self._by_kind) and (task.profile is None or not task.profile.is_settled)

    def for_kind(self, task: Task, found: Identification | None) -> Task:
        """The task with the profile for the kind of its content, where there is one; else as it is."""
        profile = None if found is None else self._by_kind.get(found.kind)
        if profile is None or found is None:
            return task
        return with_profile(task, profile, ChosenBy.KIND, found.kind, self._usual)

    def chosen_by_hand(self, task: Task, name: str) -> Task:
        """The task with this profile; an empty name leaves the choice to the kind of its content and the default. Raises
        `UnknownProfile`."""
        if name:
            return with_profile(task, self.named(name), ChosenBy.HAND, "", self._usual)
        default = self.named(self._default) if self._default else None
        return with_profile(task, default, ChosenBy.DEFAULT, "", self._usual)
