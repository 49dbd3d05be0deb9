#!/usr/bin/env python3
"""The sums that samples are known by, and ssdeep's fuzzy hash for finding similar ones. The file is read once, in chunks."""

import hashlib
from pathlib import Path

import malbox_plugin_sdk as malbox
import rehashes

CHUNK_BYTES = 1024 * 1024


class Digests(malbox.Plugin):
    """Computes them."""

    def on_task(self, ctx: malbox.Context) -> None:
        digests = digests_of(ctx.task().sample_path)
        size_bytes = ctx.task().sample_path.stat().st_size
        ctx.results().push(malbox.PluginResult.json("digests", {**digests, "size_bytes": size_bytes}))
        report = malbox.ReportBuilder("digests", "0.1.0")
        report.display_name("Digests")
        report.summary(f"SHA-256 {digests['sha256']}, {size_bytes} bytes")
        for kind in ("sha256", "sha1", "md5"):
            report.indicator(malbox.Indicator(kind, digests[kind], context="the sample"))
        report.section(
            "digests",
            "Digests",
            [malbox.Block.kv([malbox.KvPair(kind, value, mono=True) for kind, value in digests.items()])],
        )
        ctx.results().push(report.build())


def digests_of(path: Path) -> dict[str, str]:
    """Each digest by its name."""
    sums = {"sha256": hashlib.sha256(), "sha1": hashlib.sha1(), "md5": hashlib.md5()}
    fuzzy = rehashes.PySsdeep()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            for digest in sums.values():
                digest.update(chunk)
            fuzzy.update(chunk)
    return {**{name: digest.hexdigest() for name, digest in sums.items()}, "ssdeep": fuzzy.finalize()}


malbox.run(Digests())
