"""A configuration file is taken whole or refused with everything that is wrong with it."""

import os
from pathlib import Path

import pytest

from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.settings import Isolation, Settings
from malbox_tui.model.errors import ConfigError
from tests.config.files import faults, load


def test_what_a_file_says_replaces_the_defaults_and_nothing_else(tmp_path: Path) -> None:
    settings = load(tmp_path, "[general]\nmax_workers = 8\n[analysis]\ntimeout_s = 60\n[confinement]\nisolation = 'required'\n")
    assert settings.general.max_workers == 8
    assert settings.general.min_workers == Settings().general.min_workers
    assert settings.analysis.timeout_s == 60.0
    assert settings.confinement.isolation is Isolation.REQUIRED


def test_a_plugins_options_are_kept_by_its_name(tmp_path: Path) -> None:
    settings = load(tmp_path, '[plugins]\ndisabled = ["a"]\n[plugins.config.yara]\nrules = "/rules"\n')
    assert settings.plugins.disabled == ("a",)
    assert settings.plugins.config == {"yara": {"rules": "/rules"}}


def test_without_a_file_the_defaults_hold(tmp_path: Path) -> None:
    assert ConfigSource(tmp_path / "none.toml", named=False).load() == Settings()


def test_a_file_that_was_named_has_to_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: there is no such file"):
        ConfigSource(tmp_path / "none.toml", named=True).load()


def test_an_unknown_key_is_refused_with_the_nearest_valid_one(tmp_path: Path) -> None:
    assert faults(tmp_path, "[general]\nmin_worker = 2\n") == [
        ("general.min_worker", "unknown key. Did you mean general.min_workers?")
    ]


def test_an_unknown_section_is_refused_with_the_nearest_valid_one(tmp_path: Path) -> None:
    assert faults(tmp_path, "[genral]\n") == [("genral", "unknown section. Did you mean general?")]


def test_an_unknown_key_like_no_other_is_answered_with_what_there_is(tmp_path: Path) -> None:
    assert faults(tmp_path, "[serve]\nqqq = 2\n") == [("serve.qqq", "unknown key. Known here: group.")]


@pytest.mark.parametrize(
    ("content", "key", "expected"),
    [
        (
            "[general]\nmax_workers = 'four'",
            "general.max_workers",
            'a whole number, at least 0 and at most 1024, got the string "four"',
        ),
        ("[general]\nmax_workers = true", "general.max_workers", "got true"),
        ("[general]\nmax_workers = 2000", "general.max_workers", "at most 1024, got 2000"),
        ("[general]\nmax_workers = 1.5", "general.max_workers", "a whole number"),
        ("[intake]\nmax_sample_bytes = 0", "intake.max_sample_bytes", "above 0, got 0"),
        ("[intake]\nmax_sample_bytes = 99999999999999999999", "intake.max_sample_bytes", "a whole number"),
        ("[analysis]\ntimeout_s = 1800", "analysis.critical_timeout_s", "1800 is not above analysis.timeout_s, which is 1800"),
        ("[analysis]\ntimeout_s = nan", "analysis.timeout_s", "got nan"),
        ("[analysis]\ntimeout_s = inf", "analysis.timeout_s", "got inf"),
        ("[confinement]\nisolation = 'none'", "confinement.isolation", "one of 'auto', 'required', 'limits'"),
        ("[confinement]\nmemory_mb = 9223372036854775807", "confinement.memory_mb", "at least 64 and at most 1048576"),
        ("[confinement]\nscratch_mb = 9223372036854775807", "confinement.scratch_mb", "above 0 and at most 1048576"),
        ("[plugins]\ndisabled = ['a', 1]", "plugins.disabled[1]", "a string, got 1"),
        ("[plugins]\ndisabled = 'a'", "plugins.disabled", "a list"),
        ("[plugins.config.yara]\nrules = 3", "plugins.config.yara.rules", "a string, got 3"),
        ("[general]\ndrain_timeout_s = 0", "general.drain_timeout_s", "above 0 and at most 604800, got 0"),
        ("general = 1", "general", "a table, got 1"),
        ("[[general]]", "general", "a table, got a list. Write [general], with single brackets."),
    ],
)
def test_a_wrong_value_is_refused_with_what_was_expected(tmp_path: Path, content: str, key: str, expected: str) -> None:
    ((found_key, problem),) = faults(tmp_path, content)
    assert found_key == key
    assert expected in problem


def test_every_fault_of_a_file_is_found(tmp_path: Path) -> None:
    found = faults(tmp_path, "[general]\nmax_workers = -1\nidle = 1\n[analysis]\nlease_s = 0\n")
    assert [key for key, _ in found] == ["general.max_workers", "general.idle", "analysis.lease_s"]


def test_more_workers_to_stay_than_there_may_be_is_refused(tmp_path: Path) -> None:
    ((key, problem),) = faults(tmp_path, "[general]\nmin_workers = 5\n")
    assert key == "general.min_workers"
    assert "above general.max_workers, which is 4" in problem


def test_a_syntax_error_is_refused_with_its_line(tmp_path: Path) -> None:
    ((key, problem),) = faults(tmp_path, "[general]\nmax_workers\n")
    assert key is None
    assert "line 2" in problem


def test_bytes_that_are_not_utf8_are_refused_with_their_line(tmp_path: Path) -> None:
    assert faults(tmp_path, b"# fine\n# \xff\n") == [(None, "line 2 is not UTF-8, which TOML has to be.")]


def test_the_mark_that_some_editors_begin_a_file_with_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xef\xbb\xbf[general]\nmax_workers = 2\n")
    assert ConfigSource(path, named=True).load().general.max_workers == 2


def test_values_nested_without_end_are_refused(tmp_path: Path) -> None:
    assert len(faults(tmp_path, f"x = {'[' * 5000}{']' * 5000}")) == 1


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is a folder"):
        ConfigSource(tmp_path, named=True).load()


@pytest.mark.parametrize("name", ["config.toml", "config.limits.toml", "config.machines.toml"])
def test_a_pipe_in_place_of_a_file_is_refused_and_never_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    (fault,) = ConfigSource(tmp_path / "config.toml", named=False).read().faults
    assert (fault.path, fault.key) == (str(tmp_path / name), None)
    assert "it is a pipe; a configuration has to be a file, or a link to one" in str(fault)


def test_a_device_is_refused_also_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "config.toml").symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match="it is a device"):
        ConfigSource(tmp_path / "config.toml", named=True).load()


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text("[general]\nmax_workers = 8\n")
    (tmp_path / "config.toml").symlink_to("own.toml")
    assert ConfigSource(tmp_path / "config.toml", named=True).load().general.max_workers == 8


def test_escape_sequences_of_a_file_are_shown_and_never_sent(tmp_path: Path) -> None:
    found = faults(tmp_path, '["\\u001b]0;x"]\n[general]\nmax_workers = "\\u001b[31m"\n')
    assert not any("\x1b" in f"{key}{problem}" for key, problem in found)
    assert any(r"\x1b]0;x" in str(key) for key, _ in found)
