"""Machines that were changed live and kept: beside the operator's file, never in it, and over it at the next start."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest

from malbox_tui.config.loading import ConfigSource
from malbox_tui.config.machine_tables import spec_of, table_of
from malbox_tui.config.settings import Settings
from malbox_tui.config.template import as_toml
from malbox_tui.model.errors import ConfigError, StoreError
from malbox_tui.model.machine import MachineSpec
from tests.config.files import source_of

M1 = MachineSpec(name="m1", provider="simulated", platform="linux")
M2 = MachineSpec(name="m2", provider="simulated", platform="windows", tags=("office",))
MORE = MachineSpec(name="m1", provider="simulated", platform="linux", tags=("spare",), max_failures=7)
LIBVIRT = MachineSpec(
    name="win10",
    provider="libvirt",
    platform="windows",
    arch="x86",
    tags=("office", "x"),
    max_failures=5,
    uri="qemu+ssh://ana@host/system",
    domain="Windows 10",
    snapshot="clean",
    channel="qga",
    address="10.0.0.4",
    folder="C:\\in",
    disk_folder="D:\\",
    watch=("C:\\Users",),
    disk_kib_s=900,
)
TWO = '[[machines]]\nname = "m1"\nprovider = "simulated"\nplatform = "linux"\n' + (
    '[[machines]]\nname = "m2"\nprovider = "simulated"\nplatform = "windows"\ntags = ["office"]\n'
)


def specs(settings: Settings) -> list[MachineSpec]:
    return [machine.spec() for machine in settings.machines]


@pytest.mark.parametrize("machine", [M1, M2, MORE, LIBVIRT], ids=lambda machine: machine.name)
def test_a_machine_and_its_table_say_the_same(machine: MachineSpec) -> None:
    assert spec_of(table_of(machine)) == machine


async def test_machines_that_were_changed_added_or_removed_are_so_at_the_next_start(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO)
    where = await source.saved_machines().save([MORE, LIBVIRT])
    assert where == str(tmp_path / "config.machines.toml")
    assert specs(source.load()) == [MORE, LIBVIRT]
    assert (tmp_path / "config.toml").read_text() == TWO
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.machines.toml", "config.toml"]


async def test_the_file_is_for_its_owner_alone_and_says_what_it_is(tmp_path: Path) -> None:
    await source_of(tmp_path, TWO).saved_machines().save([])
    path = tmp_path / "config.machines.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("# Machines that were added, changed or removed while malbox-tui ran.")


async def test_only_what_differs_from_the_operators_file_is_kept(tmp_path: Path) -> None:
    await source_of(tmp_path, TWO).saved_machines().save([MORE, M2])
    kept = tomllib.loads((tmp_path / "config.machines.toml").read_text())
    assert kept == {
        "machines": [{"name": "m1", "provider": "simulated", "platform": "linux", "tags": ["spare"], "max_failures": 7}]
    }


async def test_later_changes_of_the_operators_file_count_for_all_other_machines(tmp_path: Path) -> None:
    await source_of(tmp_path, TWO).saved_machines().save([MORE, M2])
    source = source_of(tmp_path, TWO.replace("office", "word"))
    assert specs(source.load()) == [MORE, MachineSpec(name="m2", provider="simulated", platform="windows", tags=("word",))]


async def test_machines_that_are_the_operators_remove_what_was_kept(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO)
    await source.saved_machines().save([M1])
    where = await source.saved_machines().save([M2, M1])
    assert where == "the configuration itself, which has the same machines"
    assert not (tmp_path / "config.machines.toml").exists()


async def test_one_that_is_there_twice_in_the_operators_file_is_no_change(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO.replace("m2", "m1"))
    double = MachineSpec(name="m1 (2)", domain="m1", provider="simulated", platform="windows", tags=("office",))
    await source.saved_machines().save([M1, double])
    assert not (tmp_path / "config.machines.toml").exists()
    await source.saved_machines().save([M1])
    assert specs(source.load()) == [M1]


async def test_what_was_changed_is_told_beside_what_the_operators_file_says(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO)
    await source.saved_machines().save([MORE, LIBVIRT])
    file = tmp_path / "config.machines.toml"
    assert source.read().notes == (
        f"Machine m1 is as it was changed while malbox-tui ran: {file}.",
        f"Machine win10 was added while malbox-tui ran: {file}.",
        f"Machine m2 is left out: it was removed while malbox-tui ran ({file}).",
    )


async def test_what_is_in_effect_with_changed_machines_loads_again_as_the_same(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO)
    await source.saved_machines().save([MORE, LIBVIRT])
    again = tmp_path / "again"
    again.mkdir()
    assert source_of(again, as_toml(source.load())).load() == source.load()


async def test_without_a_file_of_the_operators_all_machines_are_kept(tmp_path: Path) -> None:
    source = ConfigSource(tmp_path / "new" / "config.toml", named=False)
    await source.saved_machines().save([M1])
    assert specs(source.load()) == [M1]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("broken", "config.machines.toml"),
        ("more = 1\n", "more"),
        ('[[machines]]\nname = "m1"\n', "machines[0].provider"),
        ('[[machines]]\nname = "m1"\nprovider = "libvirt"\nplatform = "linux"\n', "machines[0].uri"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_fault_with_the_remedy(tmp_path: Path, content: str, problem: str) -> None:
    source = source_of(tmp_path, TWO)
    (tmp_path / "config.machines.toml").write_text(content)
    with pytest.raises(ConfigError) as caught:
        source.load()
    assert problem in str(caught.value)
    assert str(caught.value).endswith("Remove this file to go back to the machines of the configuration.")


async def test_machines_that_cannot_be_kept_are_an_error_in_words(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO)
    (tmp_path / "config.machines.toml").mkdir()
    with pytest.raises(StoreError, match=r"The machines can't be kept in .*; until then they hold for this run only"):
        await source.saved_machines().save([MORE])
