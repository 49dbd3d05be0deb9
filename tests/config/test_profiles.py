"""[[profiles]]: what a file may say, and each thing that it must not, with file, key and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.settings import AnalysisSettings
from malbox_tui.model.profile import Profile

WHOLE = """
[analysis]
profile = "office"

[[profiles]]
name = "office"
plugins = ["strings", "yara-x"]
required = ["yara-x"]
kinds = ["ole", "ooxml"]
timeout_s = 60
type = "dynamic"
platform = "windows"
tags = ["office"]

[profiles.options.strings]
min_length = "8"

[[profiles]]
name = "plain"
"""


def examined(folder: Path, text: str) -> tuple[list[Profile], AnalysisSettings, list[str]]:
    file = folder / "config.toml"
    file.write_text(text)
    settings, faults = ConfigSource(file, named=True).examine()
    return [profile.profile() for profile in settings.profiles], settings.analysis, [str(fault) for fault in faults]


def test_every_key_is_taken(tmp_path: Path) -> None:
    profiles, analysis, faults = examined(tmp_path, WHOLE)
    assert faults == []
    assert analysis.profile == "office"
    assert profiles == [
        Profile(
            name="office",
            plugins=("strings", "yara-x"),
            required=("yara-x",),
            kinds=("ole", "ooxml"),
            timeout_s=60.0,
            task_type="dynamic",
            platform="windows",
            tags=("office",),
            options={"strings": {"min_length": "8"}},
        ),
        Profile(name="plain"),
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "[profiles]",
            "profiles: expected a list of tables, got a table. Write [[profiles]], with double brackets, once for each profile.",
        ),
        ("[[profiles]]", "profiles[0].name: missing."),
        ('[[profiles]]\nname = "a"\ntags = ["\\u001b"]', "profiles[0].tags[0]: profile a: expected a name of letters"),
        ('[[profiles]]\nname = "a b"', "profiles[0].name: profile a b: expected a name of letters"),
        (
            '[[profiles]]\nname = "a"\nplugin = ["x"]',
            "profiles[0].plugin: profile a: unknown key. Did you mean profiles[0].plugins?",
        ),
        ('[[profiles]]\nname = "auto"', 'profiles[0].name: profile auto: "auto" leaves the choice to the kind'),
        ('[[profiles]]\nname = "a"\n[[profiles]]\nname = "a"', "profiles[1].name: profile a: profiles[0] already has this name."),
        ('[[profiles]]\nname = "a"\nkinds = ["qqqq"]', "profiles[0].kinds: profile a: there is no kind 'qqqq'; there are"),
        (
            '[[profiles]]\nname = "a"\nkinds = ["olee"]',
            "profiles[0].kinds: profile a: there is no kind 'olee'; did you mean 'ole'?",
        ),
        (
            '[[profiles]]\nname = "a"\nkinds = ["pe"]\n[[profiles]]\nname = "b"\nkinds = ["elf", "pe"]',
            "profiles[1].kinds: profile b: 'pe' is a kind of the profile a too. Take it out of one of them.",
        ),
        (
            '[[profiles]]\nname = "a"\nplugins = ["x"]\nrequired = ["y"]',
            "profiles[0].required: profile a: 'y' is not among its plugins.",
        ),
        (
            '[[profiles]]\nname = "a"\nplugins = ["x"]\n[profiles.options.y]\nk = "v"',
            "profiles[0].options: profile a: 'y' is not among its plugins.",
        ),
        (
            '[[profiles]]\nname = "a"\n[profiles.options.y]\nk = 1',
            "profiles[0].options.y.k: profile a: expected a string, got 1.",
        ),
        (
            '[[profiles]]\nname = "a"\ntype = "static"\ntags = ["x"]',
            "profiles[0].tags: profile a: a static task needs no machine.",
        ),
        (
            '[[profiles]]\nname = "a"\ntimeout_s = 1800',
            "profiles[0].timeout_s: profile a: 1800 is not below analysis.critical_timeout_s, which is 1800.",
        ),
        ('[analysis]\nprofile = "a"', "analysis.profile: there is no profile a."),
    ],
)
def test_what_is_wrong_is_told_with_file_and_key(text: str, fault: str, tmp_path: Path) -> None:
    (found,) = examined(tmp_path, text)[2]
    assert found.startswith(f"{tmp_path}/config.toml: {fault}")
