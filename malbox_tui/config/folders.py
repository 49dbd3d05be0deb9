"""Where everything of one engine lies. One root, one engine: whoever holds the lock file in it owns all of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import platformdirs

from malbox_tui.model.errors import StoreError
from malbox_tui.model.sample import escape

APP_NAME = "malbox-tui"


@dataclass(frozen=True, slots=True)
class DataFolders:
    """The places of one data folder; `store`, `marks`, `pause`, `config_file` and `control_socket` are files, the others folders.

    Scratch holds samples in plain form while they are analysed. It lies under the root, and not in a cache folder, so that
    the lock covers it too: an engine may empty it when it starts.
    """

    root: Path
    store: Path
    marks: Path
    pause: Path
    quarantine: Path
    results: Path
    plugins: Path
    logs: Path
    scratch: Path
    control_socket: Path
    config_file: Path

    @classmethod
    def under(cls, root: Path) -> DataFolders:
        """Everything under `root`, the configuration file too. Raises `StoreError` when `root` is relative to a folder that is gone."""
        try:
            root = root.absolute()
        except OSError as exc:
            problem = f"The current folder is gone, and --data-dir {escape(bytes(root))} is relative to it."
            raise StoreError(f"{problem} Change to another folder, or give an absolute path.") from exc
        return cls._at(root, logs=root / "logs", config_file=root / "config.toml")

    @classmethod
    def of_user(cls) -> DataFolders:
        """The platform's own places for the current user (on Linux those of the XDG base directories)."""
        return cls._at(
            platformdirs.user_data_path(APP_NAME, appauthor=False),
            logs=platformdirs.user_log_path(APP_NAME, appauthor=False),
            config_file=platformdirs.user_config_path(APP_NAME, appauthor=False) / "config.toml",
        )

    @classmethod
    def chosen(cls, data_dir: Path | None) -> DataFolders:
        """Those under `data_dir`, or the user's own when it is None."""
        return cls.of_user() if data_dir is None else cls.under(data_dir)

    @classmethod
    def _at(cls, root: Path, *, logs: Path, config_file: Path) -> DataFolders:
        return cls(
            root=root,
            store=root / "malbox.sqlite3",
            marks=root / "marks.json",
            pause=root / "pause.json",
            quarantine=root / "quarantine",
            results=root / "results",
            plugins=root / "plugins",
            logs=logs,
            scratch=root / "scratch",
            control_socket=root / "control.sock",
            config_file=config_file,
        )

    @property
    def plugin_folders(self) -> tuple[Path, ...]:
        """Where the operator's plugins lie: beside the store, and beside the configuration file of this data folder."""
        return tuple(dict.fromkeys((self.plugins, self.config_file.parent / "plugins")))

    @property
    def watched(self) -> Path:
        """The folder with what was taken of watched folders; it is there when something was."""
        return self.root / "watched"

    def create(self) -> None:
        """Make the folders that are missing, for the owner alone (0700). Raises `StoreError` with the folder and the remedy."""
        for folder in (self.root, self.quarantine, self.results, self.plugins, self.logs, self.scratch):
            try:
                _make_private(folder)
            except OSError as exc:
                raise StoreError(
                    f"The folder {folder} can't be made: {exc.strerror or exc}. Make it yourself, or choose another with --data-dir."
                ) from exc


def _make_private(folder: Path) -> None:
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.mkdir(mode=0o700, exist_ok=True)
