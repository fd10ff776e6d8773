"""A page that stands alone, as one HTML file: no script, nothing fetched, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from app.ui import labels

POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light; }
body { font: 15px/1.5 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif; color: #17252b; background: #fff;
  max-width: 62rem; margin: 2rem auto; padding: 0 1.5rem; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.25; margin: 0 0 .3rem; }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; break-after: avoid; }
.banner { border-left: 4px solid #8a5a00; background: #fff6e0; padding: .5rem .8rem; margin: 1rem 0; }
.answer { font-size: 1.2rem; margin: 1rem 0; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
dt { color: #4d5f67; } dd { margin: 0; }
table { border-collapse: collapse; table-layout: fixed; width: 100%; font-size: .88rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .5rem; border-bottom: 1px solid #d4dde1; }
th { border-bottom: 2px solid #6d7f87; font-weight: 600; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
tr { break-inside: avoid; } thead { display: table-header-group; }
.note, li { color: #33454d; font-size: .88rem; }
.legend { list-style: none; padding: 0; margin: 0 0 .3rem; }
code { font: .85rem ui-monospace, "Cascadia Mono", Menlo, Consolas, monospace; }
svg { width: 100%; height: auto; max-height: 15rem; } svg.curve text { font-size: 11px; fill: #33454d; }
@media print { body { margin: 0; max-width: none; padding: 0; font-size: 11pt; } @page { margin: 16mm; } }
""".strip()


def page(title: str, heading: str, banner: str, answer: str, body: Iterable[str], style: str = "") -> str:
    """body: HTML, below the heading, the banner and the answer; style: beside that of all such pages."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{text(title)}</title>\n<style>\n{STYLE}\n{style}</style>\n</head>\n<body>",
            f"<h1>{text(heading)}</h1>",
            f'<p class="banner"><strong>{text(banner)}</strong></p>',
            f'<p class="answer">{text(answer)}</p>',
            *body,
            "</body>\n</html>\n",
        ]
    )


def text(words: object) -> str:
    """Any text as HTML that shows exactly it."""
    return escape(labels.plain(words), quote=True)


def terms(facts: Iterable[tuple[str, str]], code: bool = False) -> str:
    """Names and what they are; code: in the letters of code."""
    start, end = ("<code>", "</code>") if code else ("", "")
    lines = [f"<dt>{text(name)}</dt><dd>{start}{text(value)}{end}</dd>" for name, value in facts]
    return "\n".join(["<dl>", *lines, "</dl>"])
