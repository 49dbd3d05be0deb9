"""What the configuration says of plugins, checked against what they have."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path

from malbox_tui.model.errors import ConfigError
from malbox_tui.plugins.manifest import Manifest


def configured(manifest: Manifest, options: Mapping[str, str], config_file: str, place: str) -> dict[str, str]:
    """The options of a plugin: those of its manifest, and over them the operator's, which stand at `place` in the file. Raises
    `ConfigError`."""
    for key in options:
        if key not in manifest.config:
            known = difflib.get_close_matches(key, manifest.config, n=1, cutoff=0.5) or sorted(manifest.config)
            hint = f"; it has {', '.join(known)}" if known else "; it has none"
            raise ConfigError(config_file, f"{place}.{key}", f"the plugin has no such option{hint}")
    config = {**manifest.config, **options}
    for key in manifest.sandbox.paths:
        if (problem := _path_problem(config[key])) is not None:
            raise ConfigError(config_file, f"{place}.{key}", problem)
    return config


def must_know(name: str, there: Iterable[str], config_file: str, key: str) -> None:
    """Raises `ConfigError` for the name of a plugin that isn't there."""
    known = sorted(there)
    if name not in known:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; there are {', '.join(known) or 'none'}"
        raise ConfigError(config_file, key, f"there is no plugin {name!r}{hint}")


def _path_problem(option: str) -> str | None:
    """Why an option names no path of this host; None for one that does, and for an option that is not set."""
    if not option:
        return None
    try:
        path = Path(option).expanduser()
        if not path.is_absolute():
            return f"{str(path)!r} must be an absolute path"
        return None if path.exists() else f"there is no {path}"
    except RuntimeError:
        return f"there is no such home folder: {option!r}"
    except OSError as exc:
        return f"{option!r} can't be looked at: {exc.strerror or exc}"
