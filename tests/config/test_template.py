"""The file that `config init` writes."""

import stat
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.machines import Channel, MachineSettings, Provider
from malbox_tui.config.settings import Settings
from malbox_tui.config.shape import Section, sections
from malbox_tui.config.template import as_toml, template, write_template
from malbox_tui.config.watching import WatchSettings
from malbox_tui.config.workers import ResourceLimitSettings, WorkerSettings
from malbox_tui.model.errors import ConfigError
from tests.config.files import load


def all_sections(among: tuple[Section, ...] | None = None) -> list[Section]:
    return [deep for section in (sections() if among is None else among) for deep in (section, *all_sections(section.tables))]


def keys_of(table: dict[str, Any], name: str = "") -> set[str]:
    inner = {section.name for section in all_sections()}
    found: set[str] = set()
    for key, value in table.items():
        path = f"{name}.{key}".lstrip(".")
        found |= keys_of(value[0] if isinstance(value, list) else value, path) if path in inner else {path}
    return found


def uncommented(text: str) -> str:
    return "\n".join(line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in text.splitlines())


def test_it_loads_and_says_nothing_but_the_defaults(tmp_path: Path) -> None:
    write_template(tmp_path / "config.toml")
    assert ConfigSource(tmp_path / "config.toml", named=True).load() == Settings()


def test_its_commented_keys_are_all_keys_with_their_defaults() -> None:
    table = tomllib.loads(uncommented(template()))
    assert table["plugins"].pop("config").keys() == {"strings", "yara-x"}
    del table["workers"], table["machines"], table["watch"], table["profiles"]
    assert msgspec.convert(table, Settings) == Settings()


def test_its_commented_groups_machines_and_folders_are_examples_with_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, uncommented(template()))
    assert settings.workers == (
        WorkerSettings(
            name="windows",
            compatible_tasks=("dynamic",),
            compatible_platforms=("windows",),
            batch_processing=False,
            max_workers=4,
            resource_limits=ResourceLimitSettings(memory_mb=2048, cpu_cores=2, disk_mb=512, network_kbps=0),
        ),
    )
    assert settings.machines == (
        MachineSettings(
            name="linux-1",
            provider=Provider.LIBVIRT,
            uri="qemu:///system",
            domain="linux-1",
            snapshot="clean",
            platform="linux",
            channel=Channel.QGA,
            address="192.168.122.10",
            folder="/tmp",
            disk_folder="/var/tmp",
            disk_kib_s=20480,
            network_kbps=1000,
        ),
    )
    assert settings.watch == (
        WatchSettings(
            path="/srv/incoming",
            profile="documents",
            timeout_s=120.0,
            type="dynamic",
            platform="windows",
            arch="x64",
            machine="windows-1",
        ),
    )


def test_it_has_every_key() -> None:
    table = tomllib.loads(uncommented(template()))
    assert keys_of(table) == {f"{section.name}.{key.name}" for section in all_sections() for key in section.keys}


def test_every_key_and_section_is_explained() -> None:
    assert [key.name for section in all_sections() for key in section.keys if not key.explanation] == []
    assert [section.name for section in all_sections() if not section.explanation] == []


def test_it_is_for_its_owner_alone_and_its_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.toml"
    write_template(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_file_that_is_there_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("mine")
    with pytest.raises(ConfigError, match="left as it was"):
        write_template(path)
    assert path.read_text() == "mine"


def test_a_link_that_leads_nowhere_is_not_written_through(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError):
        write_template(path)
    assert not (tmp_path / "elsewhere").exists()


def test_what_is_in_effect_loads_again_as_the_same(tmp_path: Path) -> None:
    settings = load(tmp_path, '[general]\nmax_workers = 9\n[plugins.config."a b"]\nx = "\\u001b\\""\n')
    assert load(tmp_path, as_toml(settings)) == settings


def test_groups_and_machines_in_effect_load_again_as_the_same(tmp_path: Path) -> None:
    workers = (
        '[[workers]]\nname = "a.b"\n[workers.plugin_restrictions]\ndeny = ["elf"]\n[[workers]]\nname = "c"\nmax_workers = 0\n'
        "[workers.resource_limits]\ncpu_cores = 0.5\n"
    )
    machine = '[[machines]]\nname = "m"\nprovider = "simulated"\nplatform = "linux"\ntags = ["x", "y"]\n'
    machine += '[[machines]]\nname = "v"\nprovider = "libvirt"\nplatform = "linux"\nuri = "test:///default"\nsnapshot = "a b"\n'
    settings = load(tmp_path, workers + machine)
    assert load(tmp_path, as_toml(settings)) == settings


def test_what_a_key_that_was_left_out_means_is_shown() -> None:
    shown = as_toml(Settings(workers=(WorkerSettings(name="a"),)))
    assert "# compatible_tasks: all\n# compatible_platforms: all\n# max_workers: that of [general]\n" in shown


def test_that_there_are_no_further_groups_and_no_machines_is_shown() -> None:
    assert "# [[workers]]: none.\n\n[machinery]" in as_toml(Settings())
    assert "# [[machines]]: none.\n" in as_toml(Settings())
