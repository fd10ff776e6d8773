"""A chart: a figure, a description for people who cannot see it, and a table of its numbers; and how it is drawn.

Colours come from the theme, so that light and dark both work: Streamlit puts its own in place of these markers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from plotly.basedatatypes import BaseFigure

from app.streamlit_contact.chart_colours import CATEGORY_0, CATEGORY_1, CATEGORY_2, GRAY_70
from app.streamlit_contact.placeholders import placeholder
from app.ui import downloads, labels
from app.ui.charts import figure_pictures, png
from l2m_core.tables.spreadsheet_cells import plain_frame

ACCENT, NEUTRAL, ATTENTION, TEXT = CATEGORY_0, CATEGORY_1, CATEGORY_2, GRAY_70
# No buttons of Plotly's own: those below each chart save its picture.
CONFIG = {"displayModeBar": False, "scrollZoom": False, "doubleClick": False, "showTips": False}


@dataclass(frozen=True)
class Chart:
    """spec: a Plotly figure as plain data, or HTML (see html_charts.py); alt: what it shows, in words.

    make_table: makes the table of its numbers, which most people never open.
    """

    spec: dict[str, Any] | str
    alt: str
    make_table: Callable[[], pd.DataFrame]
    formats: Mapping[str, str] = field(default_factory=dict)
    make_svg: Callable[[], str] | None = None
    """Of a chart that is HTML: makes it as an SVG file."""

    @property
    def picture(self) -> Callable[[], str] | None:
        """Makes it as an SVG file; None where it is a table and nothing else."""
        return self.make_svg if isinstance(self.spec, str) else partial(figure_pictures.svg_of, self.spec, self.alt)

    @property
    def table(self) -> pd.DataFrame:
        return self.make_table()


class Drawn(BaseFigure):
    """A Plotly figure that skips validation, which would take longer than a step; tests validate every chart."""

    def __init__(self, spec: dict[str, Any]) -> None:
        object.__setattr__(self, "_spec", spec)

    def to_dict(self) -> dict[str, Any]:
        return self._spec  # type: ignore[no-any-return]


def draw(chart: Chart, key: str, table: bool = True, of: str = "") -> None:
    """The chart, and below it the table of its numbers, made when it is opened.

    of: the id of what it shows, under which the audit trail tells of its files; by default the chart's own key.
    table: False where `offer` is called at another place.
    """
    if isinstance(chart.spec, str):
        st.container(key=key).html(chart.spec)
    else:
        placeholder(key, chart.spec).plotly_chart(
            Drawn(chart.spec),
            key=key,
            alt=chart.alt,
            config=CONFIG,
            theme="streamlit",
            width="stretch",
        )
    if table:
        offer(chart, key, of)


def offer(chart: Chart, key: str, of: str = "") -> None:
    """What can be taken of a chart that is drawn: the table of its numbers, and its files."""
    with st.container(horizontal=True, gap="xsmall", key=f"{key}-files"):
        twin = st.expander("Numbers", key=f"{key}-numbers", type="compact", on_change="rerun")
        _offer_files(chart, key, of or key)
    if twin.open:
        with twin:
            show_table(chart, f"{key}-table")


def _offer_files(chart: Chart, key: str, of: str) -> None:
    """The picture and the numbers, each made when its button is pressed."""
    files: list[tuple[str, Callable[[], str | bytes], str]] = [("CSV", partial(to_csv, chart), "text/csv")]
    if chart.picture is not None:
        files[:0] = [("SVG", chart.picture, "image/svg+xml"), ("PNG", partial(to_png, chart.picture), "image/png")]
    for label, make, mime in files:
        name = downloads.file_name(key, of[:8], ending=label.lower())
        downloads.button(label, make, name, mime, f"{key}-{label}", ("chart exported", of), type="tertiary")


def to_png(make_svg: Callable[[], str]) -> bytes:
    return png.from_svg(labels.without_isolates(make_svg()))


def to_csv(chart: Chart) -> str:
    """The chart's numbers; no text in them begins a formula. The mark at its start tells spreadsheets that it is UTF-8."""
    return "\ufeff" + labels.without_isolates(plain_frame(chart.table).to_csv(index=False, lineterminator="\r\n"))


def show_table(chart: Chart, key: str) -> None:
    table = chart.table
    columns = {
        name: st.column_config.NumberColumn(format=chart.formats[name]) if name in chart.formats else None
        for name in table.columns
    }
    st.dataframe(
        table,
        key=key,
        hide_index=True,
        alt=f"Numbers behind the chart: {labels.plain(chart.alt)}",
        column_config={name: column for name, column in columns.items() if column is not None},
    )


def layout_of(height: int, **more: Any) -> dict[str, Any]:
    return {
        "height": height,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 8},
        "showlegend": False,
        "dragmode": False,
        "hovermode": "closest",
        **more,
    }


def axis_of(**more: Any) -> dict[str, Any]:
    return {"fixedrange": True, "zeroline": False, "automargin": True, **more}
