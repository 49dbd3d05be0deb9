"""Where an engine's files lie."""

import stat
from pathlib import Path

import pytest

from malbox_tui.config.folders import DataFolders
from malbox_tui.config.loading import ConfigSource
from malbox_tui.model.errors import StoreError


def test_with_a_data_dir_everything_lies_under_it(tmp_path: Path) -> None:
    folders = DataFolders.chosen(tmp_path / "data")
    places = [getattr(folders, name) for name in DataFolders.__dataclass_fields__]
    assert all(place.is_relative_to(tmp_path / "data") for place in places)


def test_without_one_the_platforms_own_folders_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folders = DataFolders.chosen(None)
    assert folders.store == tmp_path / "data" / "malbox-tui" / "malbox.sqlite3"
    assert folders.config_file == tmp_path / "config" / "malbox-tui" / "config.toml"


def test_a_relative_data_dir_stays_where_it_is_when_the_current_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = DataFolders.chosen(Path("data"))
    monkeypatch.chdir("/")
    assert folders.root == tmp_path / "data"


def test_a_relative_data_dir_in_a_folder_that_is_gone_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(StoreError, match=r"current folder is gone, and --data-dir here/\\x1b is relative to it"):
        DataFolders.under(Path("here/\x1b"))


def test_folders_are_made_for_the_owner_alone(tmp_path: Path) -> None:
    folders = DataFolders.under(tmp_path / "new" / "data")
    folders.create()
    made = [folders.root, folders.quarantine, folders.results, folders.plugins, folders.logs, folders.scratch]
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in made} == {0o700}


def test_a_folder_that_cant_be_made_is_named_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="--data-dir"):
        DataFolders.under(tmp_path / "file" / "data").create()


def test_the_configuration_is_the_named_file_else_that_of_the_data_folder(tmp_path: Path) -> None:
    folders = DataFolders.under(tmp_path)
    assert ConfigSource.chosen(None, folders) == ConfigSource(tmp_path / "config.toml", named=False)
    assert ConfigSource.chosen(Path("my.toml"), folders) == ConfigSource(Path("my.toml"), named=True)
