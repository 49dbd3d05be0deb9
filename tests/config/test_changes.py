"""What differs between two configurations, and what a running engine takes over."""

from __future__ import annotations

import msgspec

from malbox_tui.config.changes import changes, with_live
from malbox_tui.config.machines import MachineSettings, Provider
from malbox_tui.config.settings import (
    AnalysisSettings,
    GeneralSettings,
    IntakeSettings,
    MachinerySettings,
    PluginSettings,
    Settings,
    WorkerSettings,
)


def told(before: Settings, after: Settings) -> dict[str, bool]:
    return {str(change): change.is_live for change in changes(before, after)}


def test_nothing_differs_from_itself() -> None:
    assert changes(Settings(), Settings()) == ()


def test_each_key_that_differs_is_told_with_both_values() -> None:
    after = Settings(
        general=GeneralSettings(max_workers=6, idle_timeout_ms=5),
        analysis=AnalysisSettings(timeout_s=10, lease_s=4),
        intake=IntakeSettings(max_sample_bytes=7),
        plugins=PluginSettings(disabled=("digests",)),
    )
    assert told(Settings(), after) == {
        "general.max_workers: 4 → 6": True,
        "general.idle_timeout_ms: 60000 → 5": False,
        "intake.max_sample_bytes: 536870912 → 7": True,
        "analysis.timeout_s: 300.0 → 10": True,
        "analysis.lease_s: 30.0 → 4": False,
        'plugins.disabled: [] → ["digests"]': False,
    }


def test_groups_are_told_apart_by_name_whatever_their_order() -> None:
    a, b = WorkerSettings(name="a"), WorkerSettings(name="b")
    more = WorkerSettings(name="b", max_workers=9, min_workers=2)
    assert told(Settings(workers=(a, b)), Settings(workers=(more, a))) == {
        "workers.b.min_workers: 0 → 2": True,
        "workers.b.max_workers: (none) → 9": True,
    }


def test_a_group_that_came_or_went_is_for_the_next_start() -> None:
    a = Settings(workers=(WorkerSettings(name="a"),))
    assert told(a, Settings()) == {"workers.a: (a table) → (none)": False}
    assert told(Settings(), a) == {"workers.a: (none) → (a table)": False}


def test_machines_that_came_went_or_changed_are_taken_over_at_once() -> None:
    a, b = (MachineSettings(name=name, provider=Provider.SIMULATED, platform="linux") for name in ("a.1", "b"))
    other = MachineSettings(name="a.1", provider=Provider.SIMULATED, platform="linux", tags=("office",))
    assert told(Settings(machines=(a, b)), Settings(machines=(other,))) == {
        'machines.a.1.tags: [] → ["office"]': True,
        "machines.b: (a table) → (none)": True,
    }
    assert told(Settings(), Settings(machines=(a,))) == {"machines.a.1: (none) → (a table)": True}
    assert with_live(Settings(machines=(a, b)), Settings(machines=(other,))).machines == (other,)


def test_what_holds_for_all_machines_is_taken_over_but_how_many_start_at_once_and_how_long_guests_may_be_silent() -> None:
    former = {name: getattr(MachinerySettings(), name) for name in MachinerySettings.__struct_fields__}
    after = Settings(machinery=MachinerySettings(**{name: value + 1 for name, value in former.items()}))
    fixed = ("max_starting", "silence_timeout_s")
    live = {change.key: change.is_live for change in changes(Settings(), after)}
    assert live == {f"machinery.{name}": name not in fixed for name in former}
    assert with_live(Settings(), after).machinery == msgspec.structs.replace(
        after.machinery, **{name: former[name] for name in fixed}
    )


def test_only_what_can_be_taken_over_is() -> None:
    after = Settings(
        general=GeneralSettings(max_workers=6, idle_timeout_ms=5),
        analysis=AnalysisSettings(timeout_s=10, lease_s=4),
        workers=(WorkerSettings(name="a", min_workers=1, priority=9), WorkerSettings(name="new")),
        machines=(MachineSettings(name="m1", provider=Provider.SIMULATED, platform="linux"),),
    )
    assert with_live(Settings(workers=(WorkerSettings(name="a"),)), after) == Settings(
        general=GeneralSettings(max_workers=6),
        analysis=AnalysisSettings(timeout_s=10),
        workers=(WorkerSettings(name="a", min_workers=1),),
        machines=after.machines,
    )
