"""A private, throwaway libvirtd with guests under software emulation: no systemd, no KVM, no root daemon, loopback only.

Started as root it runs as `nobody`, and so in session mode: all that is its own lies in one folder below the temporary directory, whose
path is short, since sockets' paths may have 108 bytes. Whatever was left by a run that was killed goes at the next start.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

SNAPSHOT = "clean"
GUESTS = ("lin-1", "lin-2")
PATIENCE_S = 60.0
SILENCE_S = 1

_PREFIX = "mbrig-"
_CONFIGURATION = 'security_driver = "none"\nstdio_handler = "file"\ncgroup_controllers = [ ]\nnamespaces = [ ]\n'


class RigHost:
    """The daemon and its guests, in `root`."""

    def __init__(self, root: Path, image: Path) -> None:
        self.root = root
        self._image = image
        self._user = pwd.getpwnam("nobody")
        self._socket = root / "run/libvirt/libvirt-sock"
        self._daemon: subprocess.Popen[bytes] | None = None
        self._silenced: set[str] = set()

    @property
    def uri(self) -> str:
        """What libvirt calls it."""
        return f"qemu+unix:///session?socket={self._socket}"

    def lay_out(self) -> None:
        """Make its folders, and copies of the image that its user can read."""
        self.root.chmod(0o711)
        (self.root / "owner").write_text(_named(os.getpid()))
        for name in ("run", "config", "config/libvirt", "cache", "data", "disks", "out"):
            (self.root / name).mkdir()
            os.chown(self.root / name, self._user.pw_uid, self._user.pw_gid)
        (self.root / "config/libvirt/qemu.conf").write_text(_CONFIGURATION)
        for name in ("vmlinuz", "initrd"):
            shutil.copyfile(self._image / name, self.root / name)
            (self.root / name).chmod(0o644)

    def start_daemon(self) -> None:
        """Returns when it listens. Guests that run already are found again."""
        environment = {
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": str(self.root),
            "LC_ALL": "C",
            **{
                f"XDG_{name}": str(self.root / folder)
                for name, folder in (
                    ("RUNTIME_DIR", "run"),
                    ("CONFIG_HOME", "config"),
                    ("CACHE_HOME", "cache"),
                    ("DATA_HOME", "data"),
                )
            },
        }
        # QEMU leaves its parent: where the first process reaps slowly, the end of each machine would wait for that, but for tini.
        command = ["tini", "-s", "--", "/usr/sbin/libvirtd", "--pid-file", str(self._pid_file)]
        with (self.root / "libvirtd.log").open("ab") as log:
            self._daemon = subprocess.Popen(
                command,
                env=environment,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=self._user.pw_uid,
                group=self._user.pw_gid,
                extra_groups=[],
                start_new_session=True,
            )
        self._until(self._listens, "libvirtd did not start")

    def signal_daemon(self, number: signal.Signals) -> None:
        """Send it a signal, as SIGSTOP and SIGCONT."""
        os.kill(int(self._pid_file.read_text()), number)

    def kill_daemon(self) -> None:
        """Its guests live on."""
        assert self._daemon is not None
        self.signal_daemon(signal.SIGKILL)
        self._daemon.wait(PATIENCE_S)

    def kill_guest(self, name: str) -> None:
        """End the process of a machine."""
        for process in self._guest(name):
            process.kill()

    def suspend_guest(self, name: str) -> None:
        """Have the process of a machine stand still."""
        for process in self._guest(name):
            process.suspend()

    def wait_for_end_of_suspended(self, name: str) -> None:
        """Returns when the suspended process of a machine was asked to end."""
        self._until(lambda: all(map(_is_asked_to_end, self._guest(name))), f"nobody ends {name}")

    def running(self) -> list[str]:
        """The names of the machines that run, as their processes tell."""
        lines = [" ".join(process.cmdline()) for process in self._processes()]
        return sorted(name for name in GUESTS if any(f"guest={name}," in line for line in lines))

    def ask(self, name: str, command: str, **arguments: Any) -> Any:
        """What a guest's agent replies."""
        import libvirt_qemu

        request = {"execute": command, **({"arguments": arguments} if arguments else {})}
        with self.domain(name) as domain:
            return json.loads(libvirt_qemu.qemuAgentCommand(domain, json.dumps(request), 5, 0))["return"]

    def silence(self, name: str) -> None:
        """Stop a guest's agent; returns when it answers no more. libvirt waits for it no longer than `SILENCE_S` until all are switched
        off."""
        import libvirt

        self._until(lambda: self._answers(name), f"the agent in {name} does not answer")
        with self.domain(name) as domain:
            domain.agentSetResponseTimeout(SILENCE_S, 0)
            self._silenced.add(name)
        with suppress(libvirt.libvirtError):
            # It may be stopped before it has answered.
            self.ask(name, "guest-exec", path="/bin/sh", arg=["-c", "sleep 0.2; kill -STOP $(pidof qemu-ga)"])
        self._until(lambda: not self._answers(name), f"the agent in {name} still answers")

    @contextmanager
    def domain(self, name: str) -> Iterator[Any]:
        """A machine as libvirt's binding has it, over a connection of its own."""
        import libvirt

        connection = libvirt.open(self.uri)
        try:
            yield connection.lookupByName(name)
        finally:
            connection.close()

    def take_snapshot(self, name: str) -> None:
        """Boot a machine that is off, and take its snapshot as soon as its agent answers; it is off afterwards."""
        with self.domain(name) as domain:
            domain.create()
            self._until(lambda: self._answers(name), f"the agent in {name} does not answer")
            domain.snapshotCreateXML(f"<domainsnapshot><name>{SNAPSHOT}</name></domainsnapshot>", 0)
            domain.destroy()

    def delete_snapshot(self, name: str) -> None:
        """It can't be reverted any more."""
        with self.domain(name) as domain:
            domain.snapshotLookupByName(SNAPSHOT).delete()

    def has_snapshot(self, name: str) -> bool:
        """Whether it can be reverted."""
        with self.domain(name) as domain:
            return bool(domain.snapshotNum())

    def switch_off(self) -> None:
        """All machines, the hard way; and have libvirt wait for their agents as ever."""
        import libvirt

        for name in self.running():
            self.kill_guest(name)
        self._until(lambda: not self.running(), "a machine can't be switched off")
        while self._silenced:
            # It outlives the end of a machine.
            with self.domain(self._silenced.pop()) as domain:
                domain.agentSetResponseTimeout(libvirt.VIR_DOMAIN_AGENT_RESPONSE_TIMEOUT_BLOCK, 0)

    def define(self, name: str) -> None:
        """Make a machine, off and without a snapshot."""
        import libvirt

        self.lay_disk(name)
        connection = libvirt.open(self.uri)
        try:
            connection.defineXML(self._domain_xml(name))
        finally:
            connection.close()

    def lay_disk(self, name: str) -> None:
        """Give a machine that is off the disk that it came with."""
        disk = self.root / f"disks/{name}.qcow2"
        shutil.copyfile(self._image / "disk.qcow2", disk)
        os.chown(disk, self._user.pw_uid, self._user.pw_gid)

    @contextmanager
    def unreadable_disk(self, name: str) -> Iterator[None]:
        """The hypervisor can't open the disk of a machine meanwhile; one that runs goes on."""
        disk = self.root / f"disks/{name}.qcow2"
        mode = disk.stat().st_mode
        disk.chmod(0)
        try:
            yield
        finally:
            disk.chmod(mode)

    def end(self) -> None:
        """Nothing is left."""
        _remove(self.root)
        if self._daemon is not None:
            self._daemon.wait(PATIENCE_S)

    @property
    def _pid_file(self) -> Path:
        return self.root / "run/libvirtd.pid"

    def _processes(self) -> Iterator[psutil.Process]:
        return _processes_of(self.root)

    def _guest(self, name: str) -> list[psutil.Process]:
        return [process for process in self._processes() if f"guest={name}," in " ".join(process.cmdline())]

    def _listens(self) -> bool:
        assert self._daemon is not None
        assert self._daemon.poll() is None, (self.root / "libvirtd.log").read_text()
        with socket.socket(socket.AF_UNIX) as probe:
            return probe.connect_ex(str(self._socket)) == 0

    def _answers(self, name: str) -> bool:
        import libvirt

        try:
            self.ask(name, "guest-ping")
        except libvirt.libvirtError:
            return False
        return True

    def _until(self, holds: Any, otherwise: str) -> None:
        over = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < over, otherwise
            time.sleep(0.02)

    def _domain_xml(self, name: str) -> str:
        # The other end of its network card is a UDP port on loopback that nobody answers: whatever it sends is seen, and goes nowhere.
        here, there = _free_udp_ports()
        return f"""<domain type='qemu'>
  <name>{name}</name><memory unit='MiB'>192</memory><vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type>
    <kernel>{self.root}/vmlinuz</kernel><initrd>{self.root}/initrd</initrd>
    <cmdline>console=ttyS0 quiet panic=-1</cmdline></os>
  <features><acpi/></features>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='unsafe'/>
      <source file='{self.root}/disks/{name}.qcow2'/><target dev='vda' bus='virtio'/></disk>
    <interface type='udp'><source address='127.0.0.1' port='{there}'>
      <local address='127.0.0.1' port='{here}'/></source><model type='virtio'/></interface>
    <serial type='file'><source path='{self.root}/out/{name}.console'/></serial>
    <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <video><model type='vga' vram='2048'/></video><memballoon model='none'/>
  </devices>
</domain>"""


@contextmanager
def rig_host(image: Path) -> Iterator[RigHost]:
    """The daemon with all `GUESTS`, off, each with its snapshot."""
    import libvirt

    libvirt.registerErrorHandler(lambda _context, _error: None, None)
    _remove_what_was_left()
    root = Path(tempfile.mkdtemp(prefix=_PREFIX))
    host = RigHost(root, image)
    try:
        host.lay_out()
        host.start_daemon()
        for name in GUESTS:
            host.define(name)
            host.take_snapshot(name)
        yield host
    finally:
        host.end()


def _remove_what_was_left() -> None:
    """Of rigs whose process has ended."""
    for root in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            owner = (root / "owner").read_text()
        except OSError:
            owner = ""
        pid = owner.partition(" ")[0]
        if not owner or _named(int(pid)) != owner:
            _remove(root)


def _named(pid: int) -> str:
    """A process, told from another that gets its number later."""
    try:
        return f"{pid} {psutil.Process(pid).create_time()}"
    except psutil.NoSuchProcess:
        return ""


def _remove(root: Path) -> None:
    while left := list(_processes_of(root)):
        for process in left:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        psutil.wait_procs(left, timeout=PATIENCE_S)
    shutil.rmtree(root, ignore_errors=True)


def _processes_of(root: Path) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        try:
            is_there = process.status() != psutil.STATUS_ZOMBIE
            if is_there and f"{root}/" in " ".join(process.cmdline()) and process.pid != os.getpid():
                yield process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue


def _is_asked_to_end(process: psutil.Process) -> bool:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    return bool(int(fields["ShdPnd"], 16) & 1 << signal.SIGTERM - 1)


def _free_udp_ports() -> tuple[int, int]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        for probe in (one, other):
            probe.bind(("127.0.0.1", 0))
        return one.getsockname()[1], other.getsockname()[1]
