"""A Debian package that a benchmark can't do without, installed where that is allowed. None of its services is started."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_S = 600.0
POLICY = Path("/usr/sbin/policy-rc.d")
"""Asked before a package starts a service; 101 forbids it (https://people.debian.org/~hmh/invokerc.d-policyrc.d-specification.txt)."""
NO_SERVICES = "#!/bin/sh\nexit 101\n"


def install(package: str) -> str:
    """Install it; returns why it could not be, in words, or nothing when it is there."""
    if shutil.which("apt-get") is None:
        return f"there is no apt-get to install {package} with"
    if os.geteuid() != 0:
        return f"only root can install the package {package}"
    with _services_left_alone():
        complaint = ""
        for command in (["install"], ["update"], ["install"]):
            arguments = ["-y", "--no-install-recommends", package] if command == ["install"] else []
            complaint = _apt_get([*command, "-q", *arguments])
            if not complaint and arguments:
                return ""
    return f"the package {package} could not be installed: {complaint}"


def _apt_get(arguments: list[str]) -> str:
    """What it complains about last; nothing when it succeeds."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            ["apt-get", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            timeout=LIMIT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as exc:
        return str(exc)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"apt-get ended with {done.returncode}"


@contextmanager
def _services_left_alone() -> Iterator[None]:
    """A host that has a policy of its own keeps it."""
    if POLICY.exists():
        yield
        return
    POLICY.write_text(NO_SERVICES)
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
