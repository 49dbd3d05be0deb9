"""A real sshd on loopback, with keys and a configuration of its own in a folder, and an `ssh` that knows of it as the host `sbx`.

As `newcomer` its key is not known yet, and as `stranger` there is no key to come in with.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
PROGRAM = Path(sys.executable).with_name("malbox-tui")
PATIENCE_S = 60.0


@dataclass
class SshRig:
    """The host `sbx`. `environment` is what finds the `ssh` that knows it."""

    folder: Path
    port: int = 0
    daemon: subprocess.Popen[bytes] | None = None
    environment: dict[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Listen, on the same port as before."""
        assert SSHD is not None
        command = [SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config"), "-p", str(self.port)]
        with (self.folder / "sshd.log").open("ab") as log:
            self.daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait_until_listening()

    def stop(self) -> None:
        """Listen no more, and cut all connections."""
        daemon, self.daemon = self.daemon, None
        if daemon is not None:
            sessions = psutil.Process(daemon.pid).children(recursive=True)
            daemon.kill()
            daemon.wait()
            _kill(sessions)

    def cut(self) -> None:
        """Cut all connections; new ones are let in."""
        assert self.daemon is not None
        _kill(psutil.Process(self.daemon.pid).children(recursive=True))

    def _wait_until_listening(self) -> None:
        assert self.daemon is not None
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self.daemon.poll() is None, (self.folder / "sshd.log").read_text()


@contextmanager
def ssh_host(folder: Path) -> Iterator[SshRig]:
    """The host, listening."""
    folder.mkdir(mode=0o700)
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "authorized_keys").write_bytes((folder / "user_key.pub").read_bytes())
    rig = SshRig(folder, _free_port())
    (folder / "sshd_config").write_text(
        f"HostKey {folder}/host_key\nAuthorizedKeysFile {folder}/authorized_keys\nListenAddress 127.0.0.1\nUsePAM no\n"
        "StrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        f"PidFile none\nMaxStartups 100\n"
    )
    host_key = (folder / "host_key.pub").read_text()
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{rig.port} {host_key}")
    (folder / "config").write_text(
        f"Host sbx stranger newcomer\n  HostName 127.0.0.1\n  Port {rig.port}\n  User {getpass.getuser()}\n  IdentitiesOnly yes\n"
        f"  IdentityAgent none\n  GlobalKnownHostsFile /dev/null\n"
        f"  ConnectionAttempts 1\nHost sbx stranger\n  UserKnownHostsFile {folder}/known_hosts\n"
        f"Host newcomer\n  UserKnownHostsFile {folder}/known_to_newcomer\n"
        f"Host sbx newcomer\n  IdentityFile {folder}/user_key\nHost stranger\n  IdentityFile {folder}/none\n"
    )
    programs = folder / "bin"
    programs.mkdir()
    wrapper = programs / "ssh"
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/config "$@"\n')
    wrapper.chmod(0o700)
    rig.environment = {"PATH": f"{programs}:{os.environ['PATH']}"}
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it; the service's unit makes it
    rig.start()
    try:
        yield rig
    finally:
        rig.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(processes, timeout=PATIENCE_S)
