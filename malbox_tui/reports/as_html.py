"""A document as one HTML page that needs nothing else: no script and no link, pictures as data in it, and a policy that
forbids a browser to load anything.

Nothing of a sample is ever markup in it: every text is made visible on one line, and then escaped for HTML.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Iterator

from malbox_tui.model.sample import visible
from malbox_tui.reports.elements import (
    Code,
    Dump,
    Element,
    Heading,
    Note,
    Paragraph,
    Picture,
    Pointer,
    Problem,
    Rule,
    Said,
    Table,
    Tree,
    dump_row,
    dump_rows,
)
from malbox_tui.reports.words import sentence

_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"

_STYLE = """\
:root { color-scheme: light dark; --line: #d5dae0; --soft: #66717d; --mark: #f3f5f7; --accent: #0b6bcb; --warn: #a05a00; --bad: #b3261e;
  --good: #1b7a3d; }
@media (prefers-color-scheme: dark) { :root { --line: #38414b; --soft: #9aa5b1; --mark: #1b2127; --accent: #6cb2ff; --warn: #f0b35a;
  --bad: #ff8a80; --good: #7ddc9a; } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1.25rem; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3, h4, h5, h6 { font-size: 1.05rem; margin-bottom: .4rem; }
table { border-collapse: collapse; margin: .6rem 0; } .wide { overflow-x: auto; }
th, td { text-align: left; vertical-align: top; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; white-space: nowrap; }
td { font-family: ui-monospace, monospace; font-size: .87em; min-width: 3rem; }
img { max-width: 100%; height: auto; border: 1px solid var(--line); }
pre { background: var(--mark); padding: .7rem .9rem; border-radius: 6px; overflow-x: auto; font-size: .87em; }
.note { border-left: 3px solid var(--accent); background: var(--mark); padding: .4rem .9rem; margin: .6rem 0; }
.success { border-color: var(--good); } .warn { border-color: var(--warn); } .error { border-color: var(--bad); }
.problem { color: var(--warn); font-style: italic; } .soft { color: var(--soft); }
@media print { body { margin: 0; max-width: none; } .wide, pre { overflow: visible; white-space: pre-wrap; } }
"""

_LEVELS = ("info", "success", "warn", "error")


def as_html(title: str, elements: Iterable[Element]) -> str:
    """The whole page; `title` is safe to show."""
    body = "\n".join(line for element in elements for line in _lines(element))
    return f"""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_text(title, is_safe=True)}</title>
<style>
{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _lines(element: Element) -> Iterator[str]:
    match element:
        case Heading():
            yield f"<h{element.level}>{_text(element.text, is_safe=element.is_safe)}</h{element.level}>"
        case Paragraph():
            yield f"<p>{_prose(element.text)}</p>"
        case Said():
            yield f"<ul>{''.join(f'<li>{_text(said, is_safe=True)}</li>' for said in element.sentences)}</ul>"
        case Note():
            level = element.level if element.level in _LEVELS else "info"
            yield f'<div class="note {level}"><strong>{_text(element.level)}</strong><br>{_prose(element.text)}</div>'
        case Rule():
            yield "<hr>"
        case Table():
            yield from _table(element)
        case Code():
            yield f"<pre>{chr(10).join(_text(line) for line in element.text.splitlines())}</pre>"
        case Dump():
            rows = (dump_row(element, index) for index in range(dump_rows(element.content)))
            yield f"<pre>{chr(10).join(html.escape('  '.join(row)) for row in rows)}</pre>"
        case Tree():
            yield f"<pre>{chr(10).join(_node(*node) for node in element.nodes)}</pre>"
        case Pointer():
            caption = f": {_text(element.caption)}" if element.caption else ""
            yield f'<p><span class="soft">{element.what.capitalize()}</span> <code>{_text(element.name)}</code>{caption}</p>'
        case Picture():
            content = base64.b64encode(element.content).decode()
            yield f'<p><img alt="" src="data:{element.media_type};base64,{content}"></p>'
        case Problem():
            yield f'<p class="problem">{_text(element.text, is_safe=True)}</p>'


def _text(text: str, *, is_safe: bool = False) -> str:
    """On one line, no markup."""
    return html.escape(sentence(text) if is_safe else visible(text))


def _prose(text: str) -> str:
    return "<br>\n".join(_text(line) for line in text.splitlines())


def _table(table: Table) -> Iterator[str]:
    yield '<div class="wide"><table>'
    if table.titles:
        yield f"<thead><tr>{''.join(f'<th>{_text(title, is_safe=table.is_safe)}</th>' for title in table.titles)}</tr></thead>"
    for row in table.rows:
        first = "td" if table.titles else "th"
        cells = (f"<{tag}>{_text(cell, is_safe=table.is_safe)}</{tag}>" for cell, tag in zip(row, _tags(first), strict=False))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</table></div>"


def _tags(first: str) -> Iterator[str]:
    yield first
    while True:
        yield "td"


def _node(depth: int, label: str, more: str) -> str:
    extra = f' <span class="soft">{_text(more)}</span>' if more else ""
    return f"{'  ' * depth}{'└ ' if depth else ''}{_text(label)}{extra}"
