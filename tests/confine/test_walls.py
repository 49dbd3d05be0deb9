"""What confined code can't reach: canaries are placed where the engine keeps its things, and a plugin tries to get at each."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from malbox_tui.config.settings import Isolation
from malbox_tui.confine.probe import choose, probe_bubblewrap
from malbox_tui.model.errors import ConfinementUnavailable
from tests.confine.rig import rig, walls_of, write_plugin

pytestmark = pytest.mark.slow

REACH = """
    import json, pathlib, socket
    reached = {}
    def attempt(name, action):
        try:
            action()
            reached[name] = "reached"
        except OSError as exc:
            reached[name] = type(exc).__name__
    wanted = json.loads(ctx.task().sample_bytes())
    for name, path in wanted["files"].items():
        attempt(name, lambda: open(path, "rb").read())
    def connect(family, address):
        with socket.socket(family) as connection:
            connection.settimeout(5)
            connection.connect(address)
    attempt("control socket", lambda: connect(socket.AF_UNIX, wanted["socket"]))
    attempt("loopback", lambda: connect(socket.AF_INET, ("127.0.0.1", wanted["port"])))
    attempt("inbox", lambda: open(ctx.task().sample_path.parent / "mine", "w"))
    attempt("own code", lambda: open(__file__, "a"))
    attempt("system", lambda: open("/usr/mine", "w"))
    attempt("scratch", lambda: open("/tmp/mine", "w"))
    ctx.results().push(malbox.PluginResult.json("reached", reached))
    ctx.results().push(malbox.PluginResult.json("listing", sorted(os.listdir("/"))))
"""


async def test_a_plugin_reaches_nothing_of_the_host(tmp_path: Path) -> None:
    write_plugin(tmp_path / "plugins", REACH)
    home = Path.home() / ".malbox-canary"
    files = {
        "store": tmp_path / "store.db",
        "quarantine": tmp_path / "quarantine" / "sample",
        "home": home,
        "shadow": Path("/etc/shadow"),
    }
    (tmp_path / "quarantine").mkdir()
    for path in (files["store"], files["quarantine"], home):
        path.write_text("canary")
        path.chmod(0o644)
    tmp_path.chmod(0o755)
    try:
        with (
            socket.socket(socket.AF_UNIX) as control,
            socket.socket() as listening,
        ):
            control.bind(str(tmp_path / "control"))
            (tmp_path / "control").chmod(0o777)
            control.listen()
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            wanted = {
                "files": {name: str(path) for name, path in files.items()},
                "socket": str(tmp_path / "control"),
                "port": listening.getsockname()[1],
            }
            async with rig(tmp_path, Isolation.REQUIRED) as subject:
                run = await subject.run(json.dumps(wanted).encode())
                assert run.reason == ""
                reached = json.loads(await subject.content(run, "reached"))
    finally:
        home.unlink()
    assert reached.pop("scratch") == "reached"
    assert "reached" not in reached.values(), reached
    assert set(reached) == {*files, "control socket", "loopback", "inbox", "own code", "system"}


async def test_a_plugin_has_no_rights_and_can_make_no_namespace_as_a_plain_user(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        status = open("/proc/self/status").read()
        rights = [line.split()[1] for line in status.splitlines() if line.startswith(("CapEff", "CapPrm", "CapBnd", "CapInh"))]
        ctx.results().push(malbox.PluginResult.json("rights", [rights, os.getuid(), os.listdir("/proc/self/ns")]))
        """,
    )
    async with rig(tmp_path, Isolation.REQUIRED) as subject:
        run = await subject.run()
        rights, uid, _namespaces = json.loads(await subject.content(run, "rights"))
    assert uid != 0
    assert set(rights[1:3]) == {"0000000000000000"}


async def test_a_process_sees_only_itself(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        ctx.results().push(malbox.PluginResult.json("pids", pids))
        """,
    )
    async with rig(tmp_path, Isolation.REQUIRED) as subject:
        run = await subject.run()
        assert len(json.loads(await subject.content(run, "pids"))) <= 3


@pytest.mark.parametrize("isolation", [Isolation.REQUIRED, Isolation.LIMITS])
async def test_the_environment_of_the_engine_stays_outside(
    tmp_path: Path, isolation: Isolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    write_plugin(tmp_path / "plugins", "ctx.results().push(malbox.PluginResult.json('environment', dict(os.environ)))")
    async with rig(tmp_path, isolation) as subject:
        run = await subject.run()
        assert b"hunter2" not in await subject.content(run, "environment")


@pytest.mark.parametrize("isolation", [Isolation.REQUIRED, Isolation.LIMITS])
async def test_of_the_open_files_of_the_engine_only_the_wire_is_inherited(tmp_path: Path, isolation: Isolation) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        open_files = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]
        ctx.results().push(malbox.PluginResult.json("open", open_files))
        """,
    )
    async with rig(tmp_path, isolation) as subject:
        run = await subject.run()
        kinds = sorted(name.split(":")[0] for name in json.loads(await subject.content(run, "open")))
    assert kinds == ["/dev/null", "pipe", "pipe", "socket"]


async def test_the_private_folder_has_a_size(tmp_path: Path) -> None:
    write_plugin(
        tmp_path / "plugins",
        """
        for number in range(64):
            with open(f"/tmp/{number}", "wb") as file:
                file.write(bytes(16 * 1024 * 1024))
        """,
    )
    async with rig(tmp_path, Isolation.REQUIRED) as subject:
        run = await subject.run()
    assert run.reason == "it reached its disk limit 256 MiB"


async def test_limits_alone_can_be_asked_for_and_say_that_they_are_weaker() -> None:
    chosen = await choose(Isolation.LIMITS)
    assert chosen.isolation.startswith("limits only")
    assert not chosen.walls.has_namespace


async def test_required_isolation_is_refused_where_there_is_no_bubblewrap(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfinementUnavailable, match=r"bubblewrap .* is not installed.*make system-deps"):
        await choose(Isolation.REQUIRED)
    assert (await choose(Isolation.AUTO)).isolation == "limits only: bubblewrap (bwrap) is not installed"


async def test_a_bubblewrap_that_fails_is_said_with_its_own_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for program in ("bwrap", "setpriv"):
        fake = tmp_path / program
        fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    probe = await probe_bubblewrap()
    assert not probe.works
    assert "No permissions to create new namespace" in probe.reason
    assert "unprivileged_userns_clone" in probe.remedy


async def test_a_host_without_room_to_try_bubblewrap_is_told_so_instead_of_given_weaker_walls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await walls_of(Isolation.REQUIRED)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(ConfinementUnavailable, match=r"could not be tried: .*/gone/.*TMPDIR"):
        await choose(Isolation.AUTO)


PLAIN_USER = """
import asyncio, sys
sys.path[:0] = {paths!r}
from malbox_tui.confine.probe import probe_bubblewrap
print(asyncio.run(probe_bubblewrap()))
"""


async def test_it_works_as_root_and_as_a_plain_user() -> None:
    await walls_of(Isolation.REQUIRED)
    if os.geteuid() != 0:
        return
    drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"]
    paths = [str(Path(__file__).parents[2]), *(path for path in sys.path if path.endswith("site-packages"))]
    other_python = [*drop, "/usr/bin/python3", "-c"]
    usable = subprocess.run(
        [*other_python, f"import sys; sys.path[:0] = {paths!r}; import msgspec, malbox_tui"], capture_output=True
    )
    if usable.returncode:
        pytest.skip("the system's Python can't use this environment as another user")
    done = subprocess.run([*other_python, PLAIN_USER.format(paths=paths)], capture_output=True, text=True)
    assert "Probe(works=True" in done.stdout, done.stderr + done.stdout
