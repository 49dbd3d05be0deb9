#!/usr/bin/env python3
"""The sums that samples are known by, and fuzzy hashes for finding similar ones: ssdeep's and, where py-tlsh is installed, TLSH.

The file is read once, in chunks.
"""

import hashlib
from pathlib import Path
from typing import Any

import malbox_plugin_sdk as malbox
import rehashes

try:
    import tlsh
except ImportError:
    tlsh = None

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
    locality = None if tlsh is None else tlsh.Tlsh()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            for digest in sums.values():
                digest.update(chunk)
            fuzzy.update(chunk)
            if locality is not None:
                locality.update(chunk)
    digests = {**{name: digest.hexdigest() for name, digest in sums.items()}, "ssdeep": fuzzy.finalize()}
    return digests if locality is None else {**digests, **tlsh_of(locality)}


def tlsh_of(locality: Any) -> dict[str, str]:
    """TLSH's hash by its name; there is none of a content that is shorter than 50 bytes, or too much alike."""
    try:
        locality.final()
        digest = locality.hexdigest()
    except ValueError:
        return {}
    return {} if digest in ("", "TNULL") else {"tlsh": digest}


if __name__ == "__main__":
    malbox.run(Digests())
