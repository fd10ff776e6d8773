"""The files of a step-through. Each is made from the stored record when its button is pressed."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app.store import StepThrough
from app.ui import downloads
from app.ui.traces import exchange, loading, report, report_html
from app.ui.traces.loading import LoadedTrace

Make = Callable[[LoadedTrace], str | bytes]
BYTE_ORDER_MARK = "\ufeff"  # without it, spreadsheets read µ and é as something else


def to_csv(loaded: LoadedTrace) -> str:
    return BYTE_ORDER_MARK + loaded.trace.to_csv()


def to_html(loaded: LoadedTrace) -> str:
    return report_html.to_html(report.make(loaded))


def to_pdf(loaded: LoadedTrace) -> bytes:
    from app.ui.traces import report_pdf  # takes a moment, and most visits need no PDF

    return report_pdf.to_pdf(report.make(loaded))


FILES: tuple[tuple[str, str, str, Make], ...] = (
    ("Report as PDF", "pdf", "application/pdf", to_pdf),
    ("Report as HTML", "html", "text/html", to_html),
    ("Trace as CSV", "csv", "text/csv", to_csv),
    ("Trace as JSON", "json", "application/json", exchange.to_json),
)


def show(owner: str, step_through: StepThrough) -> None:
    """A popover with one button for each kind of file."""
    # Filled before it is opened: a popover that reruns the page to fill itself is closed by an earlier run.
    popover = st.popover("Export", icon=":material/download:", help="Report, table, or the complete trace")
    with popover, st.container(width=300):
        buttons(owner, step_through, "export")
        st.caption(
            "JSON is the complete record: imported again, it gives the same numbers. CSV has one row for each step. "
            "Reports carry all fingerprints."
        )


def buttons(owner: str, step_through: StepThrough, key: str) -> None:
    """One button for each kind of file. key: what their keys begin with."""
    for label, ending, mime, make in FILES:
        name = downloads.file_name(step_through.title or "trace", step_through.id[:8], ending=ending)
        made = _build(owner, step_through.id, make)
        act = ("step-through exported", step_through.id)
        downloads.button(label, made, name, mime, f"{key}-{ending}", act, width="stretch")


def _build(owner: str, step_through_id: str, make: Make) -> Callable[[], str | bytes]:
    return lambda: make(loading.load(owner, step_through_id))
