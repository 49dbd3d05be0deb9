"""Limits that were changed live and saved: beside the operator's file, never in it, and over it at the next start."""

import os
import stat
import tomllib
from pathlib import Path

import pytest

from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.saved_limits import limits_of
from malbox_tui.config.template import as_toml
from malbox_tui.model.errors import ConfigError, StoreError
from tests.config.files import load, source_of

TWO_GROUPS = '[general]\nmax_workers = 3\n[[workers]]\nname = "win"\n'
"""Limits 1 to 3 for the default group; 0 to as many as that may have for `win`."""

SAVED = "[groups.default]\nmin_workers = 2\nmax_workers = 8\n"


def with_saved(folder: Path, content: str, saved: str) -> ConfigSource:
    (folder / "config.limits.toml").write_text(saved)
    return source_of(folder, content)


async def test_saved_limits_are_those_of_the_next_start(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO_GROUPS)
    await source.saved_limits().save({"default": (2, 8), "win": (1, 1)})
    assert limits_of(source.load()) == {"default": (2, 8), "win": (1, 1)}


async def test_they_are_kept_beside_the_operators_file_which_stays_as_it_was(tmp_path: Path) -> None:
    where = await source_of(tmp_path, TWO_GROUPS).saved_limits().save({"default": (2, 8), "win": (0, 3)})
    assert where == str(tmp_path / "config.limits.toml")
    assert (tmp_path / "config.toml").read_text() == TWO_GROUPS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.limits.toml", "config.toml"]


async def test_the_file_is_for_its_owner_alone_and_says_what_it_is(tmp_path: Path) -> None:
    await source_of(tmp_path, TWO_GROUPS).saved_limits().save({"default": (2, 8)})
    path = tmp_path / "config.limits.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("# Limits of worker groups that were changed while malbox-tui ran, and saved.")


async def test_only_what_differs_from_the_operators_file_is_kept(tmp_path: Path) -> None:
    await source_of(tmp_path, TWO_GROUPS).saved_limits().save({"default": (1, 3), "win": (1, 2)})
    kept = tomllib.loads((tmp_path / "config.limits.toml").read_text())
    assert kept == {"groups": {"win": {"min_workers": 1, "max_workers": 2}}}


async def test_limits_equal_to_the_operators_remove_what_was_saved(tmp_path: Path) -> None:
    source = with_saved(tmp_path, TWO_GROUPS, SAVED)
    where = await source.saved_limits().save({"default": (1, 3), "win": (0, 3)})
    assert where == "the configuration itself, which has the same limits"
    assert not (tmp_path / "config.limits.toml").exists()


async def test_limits_are_compared_with_the_file_as_it_is_when_they_are_saved(tmp_path: Path) -> None:
    limits = source_of(tmp_path, TWO_GROUPS).saved_limits()
    source = source_of(tmp_path, "[general]\nmax_workers = 9\n")
    await limits.save({"default": (1, 3)})
    assert limits_of(source.load()) == {"default": (1, 3)}


async def test_beside_a_file_that_broke_since_all_limits_are_kept(tmp_path: Path) -> None:
    limits = source_of(tmp_path, TWO_GROUPS).saved_limits()
    source_of(tmp_path, "broken")
    await limits.save({"default": (1, 3)})
    assert limits_of(source_of(tmp_path, TWO_GROUPS).load())["default"] == (1, 3)
    assert (tmp_path / "config.limits.toml").exists()


async def test_without_a_file_they_go_over_the_defaults(tmp_path: Path) -> None:
    source = ConfigSource(tmp_path / "new" / "config.toml", named=False)
    await source.saved_limits().save({"default": (0, 2)})
    assert limits_of(source.load()) == {"default": (0, 2)}
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


async def test_what_was_saved_before_is_replaced_whole(tmp_path: Path) -> None:
    limits = source_of(tmp_path, TWO_GROUPS).saved_limits()
    await limits.save({"default": (2, 8), "win": (1, 1)})
    await limits.save({"default": (1, 3), "win": (2, 2)})
    assert limits_of(source_of(tmp_path, TWO_GROUPS).load()) == {"default": (1, 3), "win": (2, 2)}


async def test_limits_that_cant_be_saved_are_an_error_with_the_remedy_and_nothing_changes(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO_GROUPS)
    (tmp_path / "config.limits.toml").mkdir()
    with pytest.raises(StoreError, match=r"config\.limits\.toml: Is a directory\. .* they hold for this run only"):
        await source.saved_limits().save({"default": (2, 8)})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.limits.toml", "config.toml"]


async def test_a_configuration_from_a_pipe_is_not_read_a_second_time(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO_GROUPS)
    source.path.unlink()
    os.mkfifo(source.path)
    await source.saved_limits().save({"default": (1, 3)})
    assert (tmp_path / "config.limits.toml").exists()


def test_a_group_without_a_ceiling_of_its_own_doesnt_follow_a_saved_one(tmp_path: Path) -> None:
    assert limits_of(with_saved(tmp_path, TWO_GROUPS, SAVED).load()) == {"default": (2, 8), "win": (0, 3)}


def test_only_limits_are_changed(tmp_path: Path) -> None:
    own = source_of(tmp_path, TWO_GROUPS).load().groups()
    changed = with_saved(tmp_path, TWO_GROUPS, SAVED).load().groups()
    assert [group.name for group in changed] == [group.name for group in own]
    assert [group.idle_timeout_s for group in changed] == [group.idle_timeout_s for group in own]


def test_the_name_of_the_saved_file_follows_that_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "sbx.conf").write_text("")
    (tmp_path / "sbx.conf.limits.toml").write_text(SAVED)
    assert limits_of(ConfigSource(tmp_path / "sbx.conf", named=True).load()) == {"default": (2, 8)}


def test_it_is_said_which_limits_are_saved_ones(tmp_path: Path) -> None:
    assert with_saved(tmp_path, TWO_GROUPS, SAVED).read().notes == (
        f"{tmp_path}/config.limits.toml: the group default has min_workers = 2 and max_workers = 8, as saved; "
        "by the configuration itself they are 1 and 3.",
    )


def test_saved_limits_that_the_operators_file_has_too_are_not_worth_a_word(tmp_path: Path) -> None:
    assert with_saved(tmp_path, "[general]\nmin_workers = 2\nmax_workers = 8\n", SAVED).read().notes == ()


def test_limits_of_a_group_that_is_gone_are_passed_over_and_said(tmp_path: Path) -> None:
    source = with_saved(tmp_path, TWO_GROUPS, '[groups."o\\u001bld"]\nmin_workers = 1\nmax_workers = 2\n')
    assert limits_of(source.load()) == {"default": (1, 3), "win": (0, 3)}
    assert source.read().notes == (
        f"{tmp_path}/config.limits.toml: there is no group o\\x1bld in the configuration; its saved limits are not used.",
    )


def test_what_is_in_effect_with_saved_limits_loads_again_as_the_same(tmp_path: Path) -> None:
    settings = with_saved(tmp_path, TWO_GROUPS, SAVED).load()
    (tmp_path / "elsewhere").mkdir()
    assert load(tmp_path / "elsewhere", as_toml(settings)) == settings


@pytest.mark.parametrize(
    ("saved", "key", "problem"),
    [
        ("[groups.default]\nmin_workers = 1\n", "groups.default.max_workers", "missing."),
        ("[groups.default]\nmin_workers = -1\nmax_workers = 1\n", "groups.default.min_workers", "at least 0"),
        (
            "[groups.default]\nmin_workers = 2\nmax_workers = 1\n",
            "groups.default.min_workers",
            "2 is above the group's max_workers",
        ),
        ("[default]\n", "default", "unknown section."),
        ("x", None, "not valid TOML"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_the_remedy(tmp_path: Path, saved: str, key: str | None, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        with_saved(tmp_path, TWO_GROUPS, saved).load()
    assert (raised.value.path, raised.value.key) == (str(tmp_path / "config.limits.toml"), key)
    assert problem in raised.value.problem
    assert raised.value.problem.endswith(" Remove this file to go back to the limits of the configuration.")


def test_faults_of_both_files_are_found(tmp_path: Path) -> None:
    faults = with_saved(tmp_path, "x", "y").read().faults
    assert [Path(fault.path).name for fault in faults] == ["config.toml", "config.limits.toml"]
