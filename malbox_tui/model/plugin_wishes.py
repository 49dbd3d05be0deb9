"""What is asked of the plugins of one task. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from malbox_tui.model.plan import Plan


class PluginWishes(msgspec.Struct, frozen=True):
    """`only`: the plugins that take part, beside what they need, in place of those of the task's profile; empty: as that says.
    `options`: by plugin, over those that it has anyway, its profile's included."""

    only: tuple[str, ...] = ()
    options: Mapping[str, Mapping[str, str]] = {}

    def kept_out(self, plan: Plan, names: Iterable[str]) -> dict[str, str]:
        """Those of the plugins `names` that don't take part, each with the reason."""
        reason = f"The task is to be looked at by {', '.join(self.only)} only."
        return dict.fromkeys(plan.left_out(self.only, names), reason)

    def written_options(self) -> list[str]:
        """The options as a person writes them."""
        return [f"{name}.{key}={value}" for name, given in self.options.items() for key, value in given.items()]

    def options_over(self, others: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str]]:
        """By plugin: these options, and of `others` those that these say nothing of."""
        names = (*others, *(name for name in self.options if name not in others))
        return {name: {**others.get(name, {}), **self.options.get(name, {})} for name in names}


NO_WISHES = PluginWishes()
