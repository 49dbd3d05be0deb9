"""The worker groups that a configuration describes."""

from malbox_tui.config.settings import GeneralSettings, GroupSettings, Settings
from malbox_tui.config.workers import PluginRestrictions, ResourceLimitSettings, WorkerSettings
from malbox_tui.model.limits import ResourceLimits


def test_without_profiles_there_is_one_group_that_takes_everything() -> None:
    assert Settings().groups() == (GroupSettings(name="default", min_workers=1, max_workers=4, idle_timeout_s=60.0, priority=5),)


def test_profiles_follow_the_default_group_in_their_order() -> None:
    settings = Settings(workers=(WorkerSettings(name="b"), WorkerSettings(name="a")))
    assert [group.name for group in settings.groups()] == ["default", "b", "a"]


def test_a_profile_has_malboxs_defaults_and_the_ceiling_of_general() -> None:
    settings = Settings(general=GeneralSettings(max_workers=7), workers=(WorkerSettings(name="a"),))
    assert settings.groups()[1] == GroupSettings(
        name="a", min_workers=0, max_workers=7, idle_timeout_s=0.5, priority=5, slots=1, task_types=None, platforms=None
    )


def test_all_of_a_profile_reaches_its_group() -> None:
    worker = WorkerSettings(
        name="win",
        compatible_tasks=("dynamic",),
        compatible_platforms=("windows",),
        priority=9,
        min_workers=1,
        max_workers=2,
        idle_timeout_ms=1500,
        max_concurrent_tasks=3,
        plugin_restrictions=PluginRestrictions(allow=("pe",), deny=("elf",)),
        resource_limits=ResourceLimitSettings(memory_mb=512, cpu_cores=1.5, disk_mb=64, network_kbps=0, best_effort=True),
    )
    assert Settings(workers=(worker,)).groups()[1] == GroupSettings(
        name="win",
        min_workers=1,
        max_workers=2,
        idle_timeout_s=1.5,
        priority=9,
        slots=3,
        task_types=frozenset({"dynamic"}),
        platforms=frozenset({"windows"}),
        plugins_allowed=frozenset({"pe"}),
        plugins_denied=frozenset({"elf"}),
        limits=ResourceLimits(memory_mb=512, cpu_cores=1.5, disk_mb=64, network_kbps=0, best_effort=True),
    )


def test_a_group_that_says_nothing_of_limits_has_none_of_its_own() -> None:
    settings = Settings(workers=(WorkerSettings(name="a"),))
    assert [group.limits for group in settings.groups()] == [ResourceLimits(), ResourceLimits()]
