#!/usr/bin/env python3
"""Strings and the indicators in them. Read in one pass; what is kept is bounded, and what was left out is said."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import malbox_plugin_sdk as malbox
from extract import Found, strings_of
from indicators import indicators_in
from noise import is_noise

MIB = 1024 * 1024
MAX_KEPT_CHARACTERS = 4 * MIB
"""So much text is kept of all distinct strings together; indicators are looked for in what follows too."""
MAX_SEARCHED_CHARACTERS = 32 * MIB
"""So much text is searched for indicators; of the worst kind, which is full of their beginnings, a second is enough for about 3 MB."""
MAX_INDICATORS = 1500
MAX_OF_A_KIND = 400
MAX_SHOWN_BYTES = 96 * 1024
"""The strings in the report; with the indicators it stays under what the engine reads whole."""
MAX_SHOWN_CHARACTERS = 200
MAX_VALUE_CHARACTERS = 300
MAX_REPORTED_BYTES = 96 * 1024

KINDS = {
    "url": "URLs",
    "domain": "Domains",
    "ipv4": "IPv4 addresses",
    "ipv6": "IPv6 addresses",
    "email": "E-mail addresses",
    "wallet": "Wallets",
    "registry": "Registry keys",
    "path": "Paths",
}
"""A kind → its title, in the order of the report."""


@dataclass
class Haul:
    """What one file has: distinct strings with how often each came, and indicators with where each stands first."""

    strings: dict[str, Found] = field(default_factory=dict)
    times: Counter[str] = field(default_factory=Counter)
    indicators: dict[tuple[str, str], Found] = field(default_factory=dict)
    of_kind: Counter[str] = field(default_factory=Counter)
    kept_characters: int = 0
    searched_characters: int = 0
    is_whole: bool = True

    def take(self, found: Found) -> None:
        """One more string."""
        if found.text in self.strings:
            self.times[found.text] += 1
            return
        if self.kept_characters < MAX_KEPT_CHARACTERS:
            self.kept_characters += len(found.text)
            self.strings[found.text] = found
            self.times[found.text] = 1
        else:
            self.is_whole = False
        self.searched_characters += len(found.text)
        if self.searched_characters > MAX_SEARCHED_CHARACTERS:
            self.is_whole = False
            return
        for indicator in indicators_in(found.text):
            self._note(indicator, found)

    def _note(self, indicator: tuple[str, str], found: Found) -> None:
        if indicator in self.indicators:
            return
        if len(self.indicators) >= MAX_INDICATORS or self.of_kind[indicator[0]] >= MAX_OF_A_KIND:
            self.is_whole = False
            return
        self.of_kind[indicator[0]] += 1
        self.indicators[indicator] = found


class Strings(malbox.Plugin):
    """Reads its bounds at the start."""

    def on_start(self, config: dict[str, str]) -> None:
        self._min_length = _whole("min_length", config["min_length"], 3, 256)
        self._max_bytes = _whole("max_mib", config["max_mib"], 1, 4096) * MIB

    def on_task(self, ctx: malbox.Context) -> None:
        path = ctx.task().sample_path
        size_bytes = path.stat().st_size
        read_bytes = min(size_bytes, self._max_bytes)
        haul = Haul()
        with path.open("rb") as file:
            for number, found in enumerate(strings_of(file, self._min_length, self._max_bytes)):
                haul.take(found)
                if number % 4096 == 0:
                    ctx.progress(min(1.0, found.offset / max(1, read_bytes)), f"{len(haul.strings)} strings")
        ctx.results().push(malbox.PluginResult.bytes("strings", _listed(haul)))
        ctx.results().push(malbox.PluginResult.json("indicators", _as_values(haul)))
        ctx.results().push(_report(haul, size_bytes, read_bytes))


def _whole(name: str, text: str, least: int, most: int) -> int:
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ValueError(f"{name} must be a whole number from {least} to {most}, not {text!r}")
    return int(text)


def _listed(haul: Haul) -> bytes:
    lines = (f"{found.offset:#010x}\t{found.encoding}\t{found.text}\n" for found in haul.strings.values())
    return "".join(lines).encode()


def _as_values(haul: Haul) -> list[dict[str, object]]:
    return [{"kind": kind, "value": value, "offset": found.offset} for (kind, value), found in haul.indicators.items()]


def _report(haul: Haul, size_bytes: int, read_bytes: int) -> malbox.PluginResult:
    telling = [found for found in haul.strings.values() if not is_noise(found.text)]
    left_out = len(haul.strings) - len(telling)
    builder = malbox.ReportBuilder("strings", "0.1.0").display_name("Strings")
    named = ", ".join(f"{haul.of_kind[kind]} {title}" for kind, title in KINDS.items() if haul.of_kind[kind])
    builder.summary(f"{len(haul.strings)} distinct strings; {named or 'no indicators'}")
    for item in _reported(haul):
        builder.indicator(item)
    builder.section("indicators", "Indicators", list(_by_kind(haul)) or [malbox.Block.markdown("None was found.")])
    shown = list(_within(telling))
    blocks = [*_remarks(haul, size_bytes, read_bytes, left_out, len(telling) - len(shown)), _table(shown, haul)]
    builder.section("strings", "Strings", blocks)
    return builder.build()


def _reported(haul: Haul) -> Iterator[malbox.Indicator]:
    """Those that name something outside of the sample, as far as there is room for them."""
    room = MAX_REPORTED_BYTES // 2
    for kind in KINDS:
        for (of_kind, value), found in haul.indicators.items():
            if of_kind == kind and kind != "path" and len(value) <= MAX_VALUE_CHARACTERS and room > 0:
                room -= len(value) + 100
                yield malbox.Indicator(kind, value, f"at {found.offset:#010x}")


def _by_kind(haul: Haul) -> Iterator[malbox.Block]:
    room = MAX_REPORTED_BYTES // 2
    for kind, title in KINDS.items():
        values = [(value, found) for (of_kind, value), found in haul.indicators.items() if of_kind == kind]
        items = []
        for value, found in values:
            if room > 0:
                room -= min(len(value), MAX_VALUE_CHARACTERS) + 100
                items.append(malbox.Indicator(kind, _cut(value, MAX_VALUE_CHARACTERS), f"at {found.offset:#010x}"))
        if items:
            more = f" ({len(values) - len(items)} more in the result indicators)" if len(values) > len(items) else ""
            yield malbox.Block.heading(1, f"{title}{more}")
            yield malbox.Block.iocs(items)


def _remarks(haul: Haul, size_bytes: int, read_bytes: int, left_out: int, unshown: int) -> Iterator[malbox.Block]:
    if read_bytes < size_bytes:
        yield malbox.Block.callout("warn", f"The first {read_bytes // MIB} MiB of {size_bytes // MIB} were read (max_mib).")
    if not haul.is_whole:
        yield malbox.Block.callout("warn", "There are more strings or indicators than are kept.")
    remarks = [f"{left_out} of compilers, libraries and licences are left out"] if left_out else []
    remarks += [f"{unshown} more are in the result strings"] if unshown else []
    if remarks:
        yield malbox.Block.markdown(f"{'; '.join(remarks)}.")


def _within(strings: list[Found]) -> Iterator[Found]:
    room = MAX_SHOWN_BYTES
    for found in strings:
        room -= min(len(found.text), MAX_SHOWN_CHARACTERS) + 100
        if room < 0:
            return
        yield found


def _table(shown: list[Found], haul: Haul) -> malbox.Block:
    columns = [malbox.Column(key, key, hint) for key, hint in (("offset", "string"), ("encoding", "string"), ("times", "number"))]
    rows = [
        {
            "offset": f"{found.offset:#010x}",
            "encoding": found.encoding,
            "times": haul.times[found.text],
            "text": _cut(found.text, MAX_SHOWN_CHARACTERS),
        }
        for found in shown
    ]
    return malbox.Block.table([*columns, malbox.Column("text", "text")], rows, sortable=True, searchable=True)


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"


if __name__ == "__main__":
    malbox.run(Strings())
