"""Watched folders that were added or removed live and kept: beside the operator's file, never in it, and over it at the next start."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import msgspec
import pytest

from malbox_tui.config.settings import Settings
from malbox_tui.config.template import as_toml
from malbox_tui.config.watch_tables import MOST_WATCHED, checked, spec_of, table_of
from malbox_tui.config.watching import Afterwards, WatchSettings
from malbox_tui.model.errors import ConfigError, RefusedCommand, StoreError
from malbox_tui.model.watching import WatchSpec
from tests.config.files import source_of

OWN = WatchSettings(path="/in")
DEEP = WatchSettings(path="/deep", recursive=True, afterwards=Afterwards.MOVE, settle_s=0.5, tags=("office",), priority=-3)
TWO = '[[watch]]\npath = "/in"\n[[watch]]\npath = "/too"\n'
DEEP_PROFILE = '[[profiles]]\nname = "deep"\n'


def test_what_can_be_asked_for_is_what_the_configuration_can_say() -> None:
    asked = {field.name: field.default for field in msgspec.structs.fields(WatchSpec)}
    said = {field.name: field.default for field in msgspec.structs.fields(WatchSettings)}
    assert asked == said


@pytest.mark.parametrize("watch", [OWN, DEEP], ids=lambda watch: watch.path)
def test_a_watched_folder_its_table_and_what_is_asked_for_say_the_same(watch: WatchSettings) -> None:
    assert checked(spec_of(watch), Settings()) == watch
    assert msgspec.convert(table_of(spec_of(watch)), WatchSettings) == watch


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (WatchSpec(path="in"), "path: expected the absolute path of a folder"),
        (WatchSpec(path=""), "path: expected"),
        (WatchSpec(path="/\udcff"), "path: it is no UTF-8"),
        (WatchSpec(path="/a\nb"), "path: expected"),
        (WatchSpec(path="/" + "a" * 5000), "path: expected"),
        (WatchSpec(path="/new", afterwards="burn"), "afterwards: expected"),
        (WatchSpec(path="/new", settle_s=-1.0), "settle_s: expected"),
        (WatchSpec(path="/new", settle_s=float("nan")), "settle_s: expected"),
        (WatchSpec(path="/new", priority=10**9), "priority: expected"),
        (WatchSpec(path="/new", patterns=("a/b",)), "patterns[0]: expected"),
        (WatchSpec(path="/new", again=True, unique=True), "unique: what is known"),
        (WatchSpec(path="/new", profile="deep"), "profile: there is no profile deep."),
        (WatchSpec(path="/in/"), 'path: "/in/" is the same folder as that of /in.'),
        (WatchSpec(path="/in/below"), 'path: "/in/below" lies in the folder of /in.'),
        (WatchSpec(path="/."), 'path: "/." holds the folder of /in.'),
    ],
    ids=lambda value: value.path[:9] if isinstance(value, WatchSpec) else None,
)
def test_what_the_configuration_could_not_say_is_refused(asked: WatchSpec, problem: str) -> None:
    with pytest.raises(RefusedCommand) as refused:
        checked(asked, Settings(watch=(OWN,)))
    assert str(refused.value).startswith(problem)
    assert str(refused.value).endswith(" Nothing was changed.")


def test_a_link_to_a_watched_folder_is_that_folder(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(RefusedCommand, match="is the same folder as that of"):
        checked(WatchSpec(path=f"{tmp_path}/link"), Settings(watch=(WatchSettings(path=f"{tmp_path}/real"),)))


def test_there_are_only_so_many() -> None:
    many = tuple(WatchSettings(path=f"/in/{number}") for number in range(MOST_WATCHED))
    with pytest.raises(RefusedCommand, match="as many as may be"):
        checked(WatchSpec(path="/new"), Settings(watch=many))


async def test_folders_that_were_added_or_removed_are_so_at_the_next_start(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO)
    book = source.saved_watches()
    where = await book.save([OWN, DEEP])
    kept = tmp_path / "config.watch.toml"
    assert (where, book.latest) == (str(kept), (OWN, DEEP))
    assert source.load().watch == (OWN, DEEP)
    assert (tmp_path / "config.toml").read_text() == TWO
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.read_text().startswith("# Watched folders that were added or removed while malbox-tui ran.")
    assert tomllib.loads(kept.read_text()).keys() == {"removed", "watch"}
    assert source.read().notes == (
        f"Watched folder /deep was added while malbox-tui ran: {kept}.",
        f"Watched folder /too is left out: it was removed while malbox-tui ran ({kept}).",
    )


async def test_one_that_stands_in_place_of_the_operators_keeps_its_place(tmp_path: Path) -> None:
    source, other = source_of(tmp_path, TWO), WatchSettings(path="/in", priority=7)
    await source.saved_watches().save([other, WatchSettings(path="/too")])
    assert [watch.priority for watch in source.load().watch] == [7, 1]
    assert "Watched folder /in is as it was changed" in source.read().notes[0]


async def test_without_differences_there_is_no_file(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO)
    book = source.saved_watches()
    await book.save([OWN])
    assert await book.save(source_of(tmp_path, TWO)._own_settings()[0].watch) == (
        "the configuration itself, which has the same watched folders"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("later", "why"),
    [
        (TWO + '[[watch]]\npath = "/deep/er"\n', '"/deep" holds the folder of /deep/er.'),
        (TWO, "there is no profile deep."),
    ],
)
async def test_one_that_no_longer_fits_beside_the_operators_is_left_out_and_told(tmp_path: Path, later: str, why: str) -> None:
    given = msgspec.structs.replace(DEEP, profile="deep")
    await source_of(tmp_path, TWO + DEEP_PROFILE).saved_watches().save([OWN, WatchSettings(path="/too"), given])
    later_source = source_of(tmp_path, later + ("" if "profile" in why else DEEP_PROFILE))
    assert "/deep" not in [watch.path for watch in later_source.load().watch]
    (note,) = later_source.read().notes
    assert note.startswith("Watched folder /deep, which was added while malbox-tui ran")
    assert why in note


@pytest.mark.parametrize(
    "content", ["watch = 1", "[[watch]]\npath = 'in'", "[[watch]]\npath = '/a'\n[[watch]]\npath = '/a/b'", "[[watch", "more = 1"]
)
def test_a_kept_file_that_can_not_be_used_is_told_with_the_remedy(tmp_path: Path, content: str) -> None:
    source = source_of(tmp_path, TWO)
    (tmp_path / "config.watch.toml").write_text(content)
    with pytest.raises(ConfigError, match="Remove this file to go back to the watched folders of the configuration"):
        source.load()


async def test_a_folder_that_takes_no_file_is_told_and_nothing_counts_as_kept(tmp_path: Path) -> None:
    source = source_of(tmp_path, TWO)
    (tmp_path / "config.watch.toml").mkdir()
    book = source.saved_watches()
    with pytest.raises(StoreError, match="The watched folders can't be kept in"):
        await book.save([DEEP])
    assert book.latest is None


def test_the_configuration_that_is_shown_can_be_read_again(tmp_path: Path) -> None:
    assert source_of(tmp_path, as_toml(Settings(watch=(OWN, DEEP)))).load().watch == (OWN, DEEP)
