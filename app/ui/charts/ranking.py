"""The ranking of tests, as an HTML table, since it changes with every step (see html_charts.py).

It cannot be sorted; the table of its numbers, drawn when it is opened, can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from app.ui.charts.base import Chart


@dataclass(frozen=True)
class RankingColumn:
    """A column: its heading, the heading's tooltip, and the printf format of its numbers.

    write: where that would not read well; the format is then that of the numbers that can be sorted.
    """

    title: str
    help: str = ""
    format: str = ""
    write: Callable[[Any], str] | None = None


def ranking(
    headings: Mapping[str, RankingColumn],
    columns: Mapping[str, Sequence[Any]],
    picks: Sequence[int],
    chosen: int | None,
    alt: str,
    name: str,
    rows: Sequence[int] | None = None,
) -> Chart:
    """columns: key of its heading → values, the first one of texts; chosen: the selected row.

    picks: what `clicks` reports for each row; name: the table's name for `clicks`. rows: those that are drawn, by default
    all; the table of numbers has all of them.
    """
    drawn = range(len(picks)) if rows is None else rows
    # What says nothing of the rows that are drawn is in the table of numbers only.
    shown = {key: headings[key] for key, values in columns.items() if any(values[number] != "" for number in drawn)}
    top = "".join(f'<th scope="col" title="{escape(head.help)}">{escape(head.title)}</th>' for head in shown.values())
    body = "".join(
        _row(picks[number], number == chosen, [_write(head, columns[key][number]) for key, head in shown.items()])
        for number in drawn
    )
    html = (
        f'<div class="l2m-ranking" role="region" aria-label="{escape(alt)}" tabindex="0" data-chart="{escape(name)}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    formats = {headings[key].title: headings[key].format for key in columns if headings[key].format}
    return Chart(
        html, alt, lambda: pd.DataFrame({headings[key].title: list(values) for key, values in columns.items()}), formats
    )


def _row(pick: int, is_chosen: bool, cells: Sequence[str]) -> str:
    name, *rest = (escape(cell) for cell in cells)
    values = "".join(f"<td>{value}</td>" for value in rest)
    mark = ' aria-current="true"' if is_chosen else ""
    name = name.replace("_", "_<wbr/>")  # a long name of a column breaks between its words
    return f'<tr data-pick="{pick}"{mark}><th scope="row">{name}</th>{values}</tr>'


def _write(heading: RankingColumn, value: Any) -> str:
    """NaN stands for an unknown number and is shown as an empty cell."""
    if value is None or value != value:
        return ""
    if heading.write is not None:
        return heading.write(value)
    return heading.format % value if heading.format else str(value)
