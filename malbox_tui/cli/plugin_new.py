"""`malbox-tui plugin new NAME`: a plugin to begin with, which runs as it is made."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

from cyclopts import Parameter

from malbox_tui.cli.options import GlobalOptions, some_path
from malbox_tui.cli.output import write_line
from malbox_tui.config.loading import shown_path
from malbox_tui.model.errors import MalboxError
from malbox_tui.model.report import GUEST_RUN
from malbox_tui.model.sample import visible

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

MANIFEST = """\
[plugin]
name = "NAME"
version = "0.1.0"
description = "How much of a sample is nothing but zeros"
type = "host"
binary = "main.py"

[runtime]
state = "persistent"            # its process lives on, and gets one sample after the other
execution = "parallel"          # beside other plugins

[config]                        # its options; [plugins.config.NAME] of the configuration gives them other values
share = "0.9"

[results.report]
description = "The number of zeros, and a verdict where there are too many"
"""

ENTRY = '''\
#!/usr/bin/env python3
"""How much of a sample is nothing but zeros."""

import malbox_plugin_sdk as malbox


class Zeros(malbox.Plugin):
    """Looks at one sample after the other."""

    def on_start(self, config: dict[str, str]) -> None:
        self.share = float(config["share"])

    def on_task(self, ctx: malbox.Context) -> None:
        content = ctx.task().sample_bytes()
        zeros = content.count(0)
        report = malbox.ReportBuilder("NAME", "0.1.0")
        report.summary(f"{zeros} of {len(content)} bytes are zero")
        if zeros > self.share * len(content):
            report.verdict(malbox.Classification.Suspicious, score=20, confidence=malbox.Confidence.Low)
            report.labels(["mostly-zeros"])
        facts = [malbox.KvPair("bytes", str(len(content))), malbox.KvPair("zeros", str(zeros))]
        report.section("zeros", "Zeros", [malbox.Block.kv(facts)])
        ctx.results().push(report.build())


malbox.run(Zeros())
'''

FILES: Mapping[str, tuple[str, int]] = MappingProxyType({"plugin.toml": (MANIFEST, 0o644), "main.py": (ENTRY, 0o755)})
"""A file's name → its text, in which NAME stands for the plugin's, and its mode."""


class NotMade(MalboxError):
    """A plugin that was asked for could not be made; nothing of it is left."""


def new(
    name: Annotated[str, Parameter(name="NAME")],
    /,
    *,
    into: Annotated[Path | None, Parameter(name="--into", metavar="DIR", converter=some_path, show_default=False)] = None,
    options: GlobalOptions | None = None,
) -> int:
    """Make a plugin to begin with: a manifest, and a script that looks at each sample and reports. It runs as it is.

    Exit code 0: made; 2: it can't be called so, or can't be made, and nothing is left.

    Parameters
    ----------
    name
        Its name, and that of its folder: letters, digits, - and _.
    into
        Make its folder in this one instead of `plugins/` of the data folder, where the engine finds it.
    """
    chosen = options or GlobalOptions()
    _check_name(name, chosen)
    parent = chosen.folders.plugins if into is None else into
    if into is None:
        chosen.folders.create()
    folder = make_plugin(parent, name)
    where = shown_path(folder)
    write_line(f"Made {where}: {', '.join(FILES)}.")
    write_line(f"`{chosen.command('plugin check')} {where}` says whether it can be used.")
    if into is None:
        write_line(f"`{chosen.command('analyze')} FILE` runs it beside the others; a running engine needs `plugin reload`.")
    return 0


def make_plugin(parent: Path, name: str) -> Path:
    """Make the plugin's folder in `parent`, which is made too. Raises `NotMade`; what was there is left as it was."""
    folder = parent / name
    written: list[Path] = []
    try:
        parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir()
        for file, (text, mode) in FILES.items():
            descriptor = os.open(folder / file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            written.append(folder / file)
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text.replace("NAME", name))
    except FileExistsError as exc:
        raise NotMade(f"There is something at {shown_path(folder)} already; it was left as it was.") from exc
    except OSError as exc:
        for file_path in written:
            file_path.unlink(missing_ok=True)
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
        raise NotMade(f"{shown_path(folder)} can't be made: {exc.strerror or exc}.") from exc
    return folder


def _check_name(name: str, options: GlobalOptions) -> None:
    """Raises `NotMade` for what can't be the name of a plugin, or is that of one."""
    from malbox_tui.runtime.plugins import list_plugins

    if _NAME.fullmatch(name) is None:
        raise NotMade(
            f"{visible(name[:80])!r} can't be the name of a plugin: 1 to 64 letters, digits, - and _, a letter or digit first."
        )
    taken = {line.name for line in list_plugins(options.source.load().plugins, options.folders, options.source.shown)}
    if name == GUEST_RUN:
        raise NotMade(f"{GUEST_RUN} is the engine's own: the run of a sample in its guest. Choose another name.")
    if name in taken:
        raise NotMade(f"There is a plugin {name} already; a name is that of one plugin only.")
