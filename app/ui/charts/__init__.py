"""Every chart of the app. Each has units, a description for those who cannot see it, and a table of its numbers.

A chart is made from plain numbers, never from a model. No meaning hangs on colour alone: signs, fills and texts carry
it too.
"""

from typing import Any

from app.streamlit_contact.clicks import listen, picked
from app.ui.belief_curve import SIGNS, BeliefCurve, Point
from app.ui.charts.base import Chart, Drawn, draw, offer, show_table
from app.ui.charts.cohorts import recorded_map
from app.ui.charts.comparison import Path, two_histories
from app.ui.charts.density import density, ranges
from app.ui.charts.gains import LEGEND, MOST_ROWS, Column, gain_map
from app.ui.charts.history import history
from app.ui.charts.html_charts import class_bars, icon_array, preview
from app.ui.charts.ranking import RankingColumn, ranking

__all__ = [
    "LEGEND",
    "MOST_ROWS",
    "SIGNS",
    "BeliefCurve",
    "Chart",
    "Column",
    "Drawn",
    "Path",
    "Point",
    "RankingColumn",
    "class_bars",
    "density",
    "draw",
    "gain_map",
    "history",
    "icon_array",
    "listen",
    "offer",
    "picked",
    "preview",
    "ranges",
    "ranking",
    "recorded_map",
    "show_table",
    "two_histories",
    "warm_up",
]


def warm_up(patient: Any) -> None:
    """Makes one of each kind once, so that the first visitor does not wait for imports."""
    gains = dict(zip(patient.ranking.feature, patient.ranking.gain, strict=True))
    icon_array(0.3, "outcome")
    history(BeliefCurve([Point("start", {"outcome": 0.3})], "probability", True))
    gain_map(list(gains), [Column("start", gains, {}, patient.suggestion)])
