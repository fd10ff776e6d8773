"""Every figure of the experiments: colour-blind safe, legible without colour, with units."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from l2m_core.learn.checkpoints import write_text

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999933")
"""Okabe and Ito's, told apart by people with any colour vision; dashes and markers tell the rest."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid", "dash")
HATCHES = ("", "/", "x", "-", "|", "+", ".", "\\")
MARKERS = ("circle", "square", "diamond", "cross", "x", "triangle-up", "star", "hexagon")
ACROSS = 3
ROW, BETWEEN = 380, 100
"""Pixels: of a row of panels, and of that between two rows, where an axis and the panels' names stand."""
TOP, BOTTOM = 50, 110
WIDE, LETTER = 1100, 8
"""Pixels: of a figure with several panels, and of a letter beside an axis."""

NAMES = {
    "l2m": "L2M",
    "l2m_random": "L2M, random order",
    "l2m_learned": "L2M, policy head",
    "l2m_monte_carlo": "L2M, Monte Carlo",
    "finetuned": "L2M, fine-tuned",
    "own covariates": "L2M of the table's own covariates",
    "longer": "L2M-Syn, as many steps more",
    "gdfs": "GDFS",
    "dime": "DIME",
    "dqn": "DQN",
    "aaco": "AACO",
    "sefa": "SEFA",
    "general_model": "The general model",
    "mlp_random": "MLP, random order",
    "boosting": "Boosted trees",
    "logistic": "Logistic regression",
    "base_rate": "Base rate",
    "attention": "Full attention",
    "cnp": "CNP",
    "maml": "MAML",
    "majority": "The majority's choices",
    "greedy": "Greedy",
    "lookahead": "One-step lookahead",
    "reinforce": "REINFORCE",
    "nominal": "Nominal level",
    "gp_rbf": "GP, RBF",
    "gp_matern": "GP, Matérn",
    "bnn": "BNN",
    "bnn_plan": "BNN-Plan",
    "study_bnn": "BNN, the study's",
    "study_bnn_plan": "BNN-Plan, the study's",
    "study_bnn_plan_three_clusters": "BNN-Plan, three clusters",
    "synthetic": "Synthetic prior",
    "metabric": "METABRIC",
    "metabric_bnn": "METABRIC rows, BNN outcomes",
    "miniboone": "MiniBooNE",
    "miniboone_bnn": "MiniBooNE rows, BNN outcomes",
    "digit_pairs": "Digit pairs",
    "hospital_death": "Hospital: death",
    "hospital_long_stay": "Hospital: long stay",
    "hospital_readmission": "Hospital: readmission",
    "breast_cancer_wisconsin": "Breast cancer, Wisconsin",
    "breast_cancer": "Breast cancer, nuclei",
    "dermatology": "Dermatology",
    "diabetes_progression": "Diabetes progression",
    "wine": "Wine",
    "heart_failure": "Heart failure",
    "ilpd": "ILPD, liver patients",
    "mimic3_demo": "MIMIC-III demo",
    "spambase": "Spambase",
    "whas500": "WHAS500",
    "eicu": "eICU demo",
    "eicu_demo_apache": "eICU demo",
    "nhanes_diabetes": "NHANES",
    "ckd": "Chronic kidney disease",
    "nhanes": "NHANES",
    "pbc": "Biliary cholangitis",
    "rotterdam": "Breast cancer, Rotterdam",
    "gbsg": "Breast cancer, GBSG",
    "colon": "Colon cancer",
    "alzheimer": "Alzheimer's disease",
    "nhefs": "NHEFS",
    "monica": "MONICA",
    "help": "HELP, addiction",
    "uis": "UIS, drug treatment",
    "indomethacin": "Indomethacin trial",
    "blood_storage": "Blood storage",
    "suicide_china": "Suicide attempts, Shandong",
    "std": "Reinfections",
    "periodontal": "Periodontal therapy",
    "acute_coronary": "Acute coronary syndrome",
    "cardiac_mri": "Cardiac MRI",
    "lipids": "Lipids and sex",
    "autism": "Autistic traits",
    "diabetes_signs": "Signs of diabetes",
    "thyroid": "Thyroid disease",
    "bodies": "Body measurements",
    "attrition": "Staff attrition",
    "cells": "Segmented cells",
    "telephone": "Telephone customers",
    "colleges": "US colleges",
    "personality": "Personality items",
}
"""Of methods and of families, as a reader knows them."""


def named(name: str) -> str:
    return NAMES.get(name, name.replace("_", " "))


def lines(table: pd.DataFrame, x: str, y: str, by: str, panel: str, x_title: str, y_title: str) -> go.Figure:
    """One panel for each value of `panel`, one line for each of `by`; a band where `y_low` and `y_high` are given."""
    panels = list(dict.fromkeys(table[panel]))
    figure = _grid(panels)
    styles = {value: i for i, value in enumerate(dict.fromkeys(table[by]))}
    in_legend = set()
    for number, name in enumerate(panels):
        row, column = divmod(number, ACROSS)
        for value, part in table[table[panel] == name].groupby(by, sort=False):
            part = part.sort_values(x)
            style = styles[value]
            figure.add_trace(
                go.Scatter(
                    x=part[x],
                    y=part[y],
                    name=named(str(value)),
                    legendgroup=str(value),
                    showlegend=value not in in_legend,
                    mode="lines+markers",
                    line={"color": COLOURS[style % 8], "dash": DASHES[style % 8], "width": 2},
                    marker={"symbol": MARKERS[style % 8], "size": 7},
                    error_y=_error(part, y),
                ),
                row + 1,
                column + 1,
            )
            in_legend.add(value)
        figure.update_xaxes(title_text=x_title, row=row + 1, col=column + 1)
        figure.update_yaxes(title_text=y_title if column == 0 else None, row=row + 1, col=column + 1)
    return _finish(figure, len(panels))


def bars(table: pd.DataFrame, x: str, y: str, by: str, x_title: str, y_title: str, log: bool = False) -> go.Figure:
    """Groups of bars, told apart by colour and hatching."""
    figure = go.Figure()
    for style, (value, part) in enumerate(table.groupby(by, sort=False)):
        figure.add_bar(
            x=[named(str(name)) for name in part[x]],
            y=part[y],
            name=named(str(value)),
            marker={"color": COLOURS[style % 8], "pattern": {"shape": HATCHES[style % 8]}},
            error_y=_error(part, y),
        )
    figure.update_layout(barmode="group", xaxis_title=x_title, yaxis_title=y_title)
    if log:
        figure.update_yaxes(type="log")
    return _finish(figure, 1)


def heat_maps(maps: dict[str, pd.DataFrame], x_title: str, y_title: str, unit: str) -> go.Figure:
    """One map for each name: a frame of shares, rows by columns, with the number written into each cell."""
    # Every map has names of its own at its left side.
    longest = max(len(str(name)) for frame in maps.values() for name in frame.index)
    figure = _grid(list(maps), between=min(0.25, (LETTER * longest + 25) / WIDE))
    for number, frame in enumerate(maps.values()):
        row, column = divmod(number, ACROSS)
        values = frame.to_numpy(dtype=float)
        texts = np.where(values >= 0.005, np.char.mod("%.2f", values), "")
        heat = go.Heatmap(
            z=values,
            x=list(frame.columns),
            y=list(frame.index),
            text=texts,
            texttemplate="%{text}",
            zmin=0,
            zmax=1,
            colorscale="Cividis",
            showscale=number == 0,
            colorbar={"title": unit},
        )
        figure.add_trace(heat, row + 1, column + 1)
        figure.update_xaxes(title_text=x_title, row=row + 1, col=column + 1, type="category")
        figure.update_yaxes(
            title_text=y_title if column == 0 else None, autorange="reversed", row=row + 1, col=column + 1
        )
    return _finish(figure, len(maps), height=520)


def entitled(figure: go.Figure, title: str) -> go.Figure:
    """With a title above everything else, and room for it."""
    figure.update_layout(
        title={
            "text": title,
            "x": 0,
            "xref": "container",
            "xanchor": "left",
            "pad": {"l": 20, "t": 14},
            "y": 1,
            "yanchor": "top",
            "yref": "container",
            "font": {"size": 15},
        },
        height=figure.layout.height + 30,
        margin={"t": figure.layout.margin.t + 30},
    )
    return figure


def save(figure: go.Figure, folder: Path, name: str) -> list[Path]:
    """NAME.html, and NAME.png where kaleido and a browser are installed. The page loads plotly.js from its CDN."""
    page = folder / f"{name}.html"
    figure.write_html(page, include_plotlyjs="cdn", full_html=True)
    # Without a renderer the page is all there is, and an older picture would show other numbers.
    picture = _picture(figure, folder / f"{name}.png", scale=1.5)
    return [picture, page] if picture else [page]


def save_together(drawn: dict[str, go.Figure], folder: Path, name: str, title: str) -> dict[str, str]:
    """NAME.html with all figures, each under its key as an anchor, and NAME-KEY.svg where kaleido and a browser are
    installed: the picture's file of each key that has one."""
    parts = [
        f"<section id='{key}'>"
        f"{figure.to_html(full_html=False, include_plotlyjs=number == 0 and 'cdn', div_id=f'{key}-figure')}</section>"
        for number, (key, figure) in enumerate(drawn.items())
    ]
    head = f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title></head>"
    write_text(folder / f"{name}.html", f"{head}<body>{''.join(parts)}</body></html>\n")
    for older in folder.glob(f"{name}-*.svg"):
        older.unlink()  # it would show other numbers
    pictures = {key: _picture(figure, folder / f"{name}-{key}.svg") for key, figure in drawn.items()}
    for file in filter(None, pictures.values()):
        write_text(file, without_chance(file.read_text(encoding="utf-8")))
    return {key: file.name for key, file in pictures.items() if file}


CHANCE = r'(?:\bid="defs-|\btrace|\bcb|\bid="p[0-9a-f]{6}-(?:legend-)?)([0-9a-f]{6})\b'
"""Names of an SVG's parts that plotly draws at random: of the whole, of lines, of a colour bar and of hatchings."""


def without_chance(svg: str) -> str:
    """The same picture, with parts named by their order, so that a second run writes the same text."""
    names = {name: f"{number:06d}" for number, name in enumerate(dict.fromkeys(re.findall(CHANCE, svg)))}
    if not names:
        return svg
    return re.sub(rf"(?<=[a-z-])({'|'.join(names)})", lambda found: names[found[1]], svg)


def _picture(figure: go.Figure, file: Path, scale: float = 1.0) -> Path | None:
    """The file, or None and no older one where there is no renderer."""
    try:
        figure.write_image(file, scale=scale)
    except (ValueError, ImportError, RuntimeError, OSError):
        file.unlink(missing_ok=True)
        return None
    return file


def _grid(titles: Sequence[str], between: float | None = None) -> go.Figure:
    """between: two panels of a row, as a share of the width."""
    rows = -(-len(titles) // ACROSS)
    columns = min(ACROSS, max(1, len(titles)))
    drawn = rows * ROW - TOP - BOTTOM
    return make_subplots(
        rows,
        columns,
        subplot_titles=[named(str(t)) for t in titles],
        vertical_spacing=BETWEEN / drawn,
        horizontal_spacing=between,
    )


def _finish(figure: go.Figure, panels: int, height: int = ROW) -> go.Figure:
    rows = -(-panels // ACROSS)
    figure.update_layout(
        template="plotly_white",
        height=max(420, height * rows),
        width=WIDE if panels > 1 else 760,
        font={"size": 13},
        legend={"orientation": "h", "y": -0.18 / rows, "yanchor": "top"},
        margin={"l": 70, "r": 20, "t": TOP, "b": BOTTOM},
    )
    return figure


def _error(part: pd.DataFrame, y: str) -> dict | None:
    if f"{y}_low" not in part:
        return None
    above, below = part[f"{y}_high"] - part[y], part[y] - part[f"{y}_low"]
    return {"type": "data", "array": above, "arrayminus": below, "symmetric": False, "thickness": 1, "width": 3}
