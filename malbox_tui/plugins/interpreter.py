"""Another Python than the engine's, which the operator lets a plugin run under: what is to be known of it to confine it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from malbox_tui.confine.work import Interpreter

LIMIT_S = 10.0
OLDEST = (3, 11)
"""What processes are started with (`-P`) is not known to older ones."""

_TELL = "import json, sys; print(json.dumps([sys.prefix, sys.base_prefix, list(sys.version_info[:2])]))"


def interpreter_at(option: str) -> Interpreter:
    """The Python at this path. Raises ValueError, in words, for what is none that can be used."""
    path = Path(option)
    if not path.is_absolute():
        raise ValueError(f"{option!r} must be an absolute path")
    try:
        told = subprocess.run(
            (option, "-I", "-c", _TELL), capture_output=True, timeout=LIMIT_S, check=True, stdin=subprocess.DEVNULL
        )
        prefix, base_prefix, version = json.loads(told.stdout)
        found = Interpreter(option, Path(prefix), Path(base_prefix))
        old = tuple(version) < OLDEST
    except OSError as exc:
        raise ValueError(f"{option!r} can't be run: {exc.strerror or exc}") from exc
    except subprocess.TimeoutExpired as exc:
        raise ValueError(f"{option!r} did not answer within {LIMIT_S:g} s") from exc
    except (subprocess.CalledProcessError, ValueError, TypeError) as exc:
        raise ValueError(f"{option!r} is no Python that works") from exc
    if old:
        raise ValueError(
            f"{option!r} is Python {'.'.join(map(str, version))}; plugins need {'.'.join(map(str, OLDEST))} or newer"
        )
    return found
