"""Ten cohorts of all kinds: the app's examples, data that come with scikit-learn, and generated ones. None is a file."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from sklearn.datasets import load_digits, load_wine

import l2m_core as l2m
from tests.golden import inside

WINE_HEAD = "lot;alcohol;malic acid;ash;magnesium;colour;cellar;origin"


def ward_frame(rows: int = 80) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    ill = draw.random(rows) < 0.4
    frame = pd.DataFrame(
        {
            "record": [f"r{row:03d}" for row in range(rows)],
            "age": draw.normal(60, 10, rows).round(),
            "sex": draw.choice(["f", "m"], rows),
            "lactate": (1.5 + 1.5 * ill + draw.normal(0, 0.7, rows)).clip(0.2).round(1),
            "sodium": draw.normal(140, 4, rows).round(),
            "potassium": draw.normal(4.2, 0.5, rows).round(1),
            "scan": draw.choice(["clear", "doubtful", "dense"], rows),
            "died": np.where(ill, "yes", "no"),
        }
    )
    frame.loc[draw.random(rows) < 0.3, "lactate"] = np.nan
    return frame


def ward(rows: int = 80) -> l2m.Cohort:
    """Binary, with a panel, costs, units, limits and an ignored column."""
    features = (
        l2m.Feature("record", kind="category", role="ignored"),
        l2m.Feature("age", role="baseline", unit="years", minimum=0, maximum=120),
        l2m.Feature("sex", kind="binary", role="baseline", levels=("f", "m")),
        l2m.Feature("lactate", unit="mmol/L", cost=12, turnaround=30, minimum=0, maximum=40, reference_high=2),
        l2m.Feature("sodium", unit="mmol/L", cost=5, group="salts"),
        l2m.Feature("potassium", unit="mmol/L", cost=5, group="salts"),
        l2m.Feature("scan", kind="category", levels=("clear", "dense", "doubtful"), cost=80),
    )
    schema = l2m.Schema(features, l2m.Outcome("died", classes=("no", "yes")))
    return l2m.Cohort.from_frame(ward_frame(rows), schema=schema, name="ward")


def wines_csv() -> bytes:
    """As a person's table is: semicolons, decimal commas, blanks, a marker, detection limits, a column of words."""
    data = load_wine(as_frame=True)
    draw = np.random.default_rng(11)
    lines = [WINE_HEAD]
    for row, (values, label) in enumerate(zip(data.data.to_numpy(), data.target, strict=True)):
        numbers = [f"{value:.2f}".replace(".", ",") for value in values[[0, 1, 2, 4, 9]]]
        for place in range(5):
            if draw.random() < 0.12:
                numbers[place] = ["", "NA", "not done"][int(draw.integers(3))]
        if draw.random() < 0.05:
            numbers[1] = "<1,0"
        cellar = draw.choice(["north", "south", "hill"])
        lines.append(";".join([f"lot {row}", *numbers, str(cellar), f"estate {'ABC'[label]}"]))
    return ("\r\n".join(lines) + "\r\n").encode("utf-8-sig")


def wines() -> l2m.Cohort:
    """Three classes, read from a table of texts; what is not stated is inferred."""
    return l2m.Cohort.from_csv(
        wines_csv(), outcome="origin", baseline=["cellar"], costs={"magnesium": 4.5}, name="wines",
        missing=["not done"], censored="limit",
    )  # fmt: skip


def digits() -> l2m.Cohort:
    """Ten classes, from arrays; a third of the cells not recorded."""
    data = load_digits()
    draw = np.random.default_rng(5)
    rows = draw.permutation(len(data.target))[:130]
    x = data.data[rows][:, 18:46:3].astype(float)
    x[draw.random(x.shape) < 0.33] = np.nan
    return l2m.Cohort.from_arrays(x, data.target[rows], name="digits", outcome="digit")


def sparse() -> l2m.Cohort:
    """Four classes, four fifths of the cells not recorded, some of that because of the outcome."""
    draw = np.random.default_rng(21)
    y = draw.integers(0, 4, 300)
    x = (draw.normal(size=(300, 12)) + 0.9 * np.cos(y[:, None] + np.arange(12))).round(3)
    x[draw.random(x.shape) < 0.7 + 0.05 * y[:, None]] = np.nan
    return l2m.Cohort.from_arrays(x, y, name="sparse", classes=["a", "b", "c", "d"])


def long() -> l2m.Cohort:
    """1,500 rows, binary, with a category; half of the features are known from the start."""
    draw = np.random.default_rng(31)
    x = draw.normal(size=(1500, 8)).round(3)
    x[:, 5] = draw.integers(0, 5, 1500)
    y = (draw.random(1500) < 1 / (1 + np.exp(-1.5 * x[:, 0] - x[:, 6] + (x[:, 5] == 2)))).astype(int)
    x[draw.random(x.shape) < 0.25] = np.nan
    return l2m.Cohort.from_arrays(
        x, y, name="long", acquirable=np.arange(8) >= 3, categorical=np.arange(8) == 5,
        levels={"x5": ("red", "green", "blue", "grey", "black")}, costs=[0, 0, 0, 1, 2, 3, 8, 0.5],
    )  # fmt: skip


def wide() -> l2m.Cohort:
    """40 features in panels of four, binary."""
    draw = np.random.default_rng(41)
    x = draw.normal(size=(150, 40)).round(3)
    y = (x[:, :4].sum(1) + draw.normal(size=150) > 0.5).astype(int)
    x[draw.random(x.shape) < 0.2] = np.nan
    groups = [f"panel {place // 4}" if place < 32 else None for place in range(40)]
    return l2m.Cohort.from_arrays(x, y, name="wide", groups=groups, costs=1.0 + np.arange(40) % 7)


def few() -> l2m.Cohort:
    """60 rows, a continuous outcome, categories."""
    draw = np.random.default_rng(51)
    frame = pd.DataFrame(
        {
            "dose": draw.normal(50, 12, 60).round(1),
            "site": draw.choice(["arm", "leg", "neck"], 60),
            "fever": draw.choice(["no", "yes"], 60),
            "marker": np.where(draw.random(60) < 0.4, np.nan, draw.normal(3, 1, 60).round(2)),
        }
    )
    frame["days"] = (2 + 0.1 * frame.dose + 2 * (frame.fever == "yes") + draw.normal(0, 1, 60)).round(1)
    return l2m.Cohort.from_frame(frame, outcome="days", baseline=["site"], costs={"marker": 30}, name="few")


COHORTS: dict[str, Callable[[], l2m.Cohort]] = {
    "chest pain": lambda: inside.example("Chest pain triage"),
    "breast cancer": lambda: inside.example("Breast cancer (Wisconsin)"),
    "diabetes": lambda: inside.example("Diabetes progression"),
    "ward": ward,
    "wines": wines,
    "digits": digits,
    "sparse": sparse,
    "long": long,
    "wide": wide,
    "few": few,
}
