#!/usr/bin/env python3
"""What kind of content a sample is. Headers of executables are believed first; then Magika (a trained model) and libmagic (rules) are
compared, and where they disagree the report says so."""

from typing import Any

import malbox_plugin_sdk as malbox
from headers import Header, read_header
from kinds import MAGIKA_KINDS, UNKNOWN, Kind, akin, kind_of_libmagic, kind_of_magika
from opinions import LibmagicOpinion, LibmagicReader, MagikaOpinion, MagikaReader
from tags import tags_of

SURE_SCORE = 0.5
"""Below this score Magika's opinion counts only where libmagic has none."""


class FileType(malbox.Plugin):
    """Holds the loaded model and rules."""

    def on_start(self, config: dict[str, str]) -> None:
        self._magika = MagikaReader()
        self._libmagic = LibmagicReader()

    def on_task(self, ctx: malbox.Context) -> None:
        path = ctx.task().sample_path
        header, magika, libmagic = read_header(path), self._magika.read(path), self._libmagic.read(path)
        kind = decide(header, magika, libmagic)
        identification = {
            "kind": kind.name,
            "mime": libmagic.mime if kind_of_libmagic(libmagic.mime, libmagic.description).name == kind.name else magika.mime,
            "platform": header.platform if header else kind.platform,
            "arch": header.arch if header else None,
            "description": describe(kind, header, magika, libmagic),
            "tags": tags_of(kind.name, header, path),
        }
        ctx.results().push(malbox.PluginResult.json("identification", identification))
        ctx.results().push(report(identification, header, magika, libmagic))


def decide(header: Header | None, magika: MagikaOpinion, libmagic: LibmagicOpinion) -> Kind:
    """The kind that is believed: headers, then what both say, then whoever knows more about that family."""
    if header is not None:
        return Kind(header.kind)
    learned = kind_of_magika(magika.label)
    ruled = kind_of_libmagic(libmagic.mime, libmagic.description)
    if ruled.name == UNKNOWN.name or (ruled.vague and magika.score >= SURE_SCORE and learned.name != UNKNOWN.name):
        return learned
    if learned.name == UNKNOWN.name or magika.score < SURE_SCORE:
        return ruled
    return learned if akin(learned, ruled) else ruled


def describe(kind: Kind, header: Header | None, magika: MagikaOpinion, libmagic: LibmagicOpinion) -> str:
    """One line for people; for scripts the language that Magika recognised."""
    if header is None and kind.name in ("script", "source") and magika.label in MAGIKA_KINDS:
        return magika.description
    return libmagic.description if libmagic.description not in ("", "data") else magika.description


def report(
    identification: dict[str, Any],
    header: Header | None,
    magika: MagikaOpinion,
    libmagic: LibmagicOpinion,
) -> malbox.PluginResult:
    """The report: the outcome, then each opinion."""
    learned, ruled = kind_of_magika(magika.label), kind_of_libmagic(libmagic.mime, libmagic.description)
    blocks = [
        malbox.Block.kv([malbox.KvPair(key, _shown(value)) for key, value in identification.items() if value]),
        malbox.Block.kv(
            [
                malbox.KvPair("Magika", f"{magika.label} ({magika.score:.0%}): {magika.description}"),
                malbox.KvPair("libmagic", f"{libmagic.mime}: {libmagic.description}"),
                malbox.KvPair("header", header.summary if header else "no executable"),
            ]
        ),
    ]
    if not akin(learned, ruled) and UNKNOWN.name not in (learned.name, ruled.name):
        text = f"The opinions disagree: Magika says {learned.name}, libmagic says {ruled.name}."
        blocks.append(malbox.Block.callout("warn", text))
    if header is not None and header.damage:
        blocks.append(malbox.Block.callout("warn", header.damage))
    builder = malbox.ReportBuilder("file-type", "0.1.0").display_name("File type")
    place = "/".join(part for part in (identification["platform"], identification["arch"]) if part)
    builder.summary(f"{identification['kind']}{f' for {place}' if place else ''}: {identification['description']}")
    builder.section("identification", "Identification", blocks)
    return builder.build()


def _shown(value: str | list[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


if __name__ == "__main__":
    malbox.run(FileType())
