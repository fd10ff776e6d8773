"""The paper's figures in the paper's form, as far as its captions tell it, drawn from our records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import plotly.graph_objects as go

from train.study.beside.records import Records
from train.study.experiments import ablations, acquisition, figures, planning, policy_maps, uncertainty
from train.study.experiments.comparison import log_loss_by_step, summarise_groups

REAL = ("metabric", "miniboone", "digit_pairs", "hospital_long_stay", "hospital_death", "hospital_readmission")
"""The paper's tables with their own outcomes."""
HOSPITAL = REAL[3:]
GP = ("gp_rbf", "gp_matern")
SCORE_NAMES = {
    "log_loss": "log loss (nats)",
    "mse": "MSE",
    "auroc": "AUROC",
    "brier": "Brier score",
    "kl_to_truth": "KL to the truth (nats)",
    "brier_to_truth": "Brier to the truth",
    "precision": "precision",
    "recall": "recall",
}


def is_drawn(family: str) -> bool:
    """Whether its outcomes are drawn for the rows of a real table."""
    return family.endswith("_bnn") and family != "study_bnn"


@dataclass(frozen=True)
class Drawing:
    """How one figure is drawn."""

    record: str
    """The experiment."""
    table: Callable[[Records], pd.DataFrame]
    """What is shown, with a column `family`; empty where the record lacks it."""
    figure: Callable[[pd.DataFrame], go.Figure]
    form: str
    """What a reader must know beside the paper's caption: in what the form or the quantity differs."""
    takes: Callable[[str], bool] = lambda family: True
    """Families of the record that belong into the figure."""
    wanted: tuple[str, ...] = ()
    """Families that the paper shows; the absence of one is told."""


# -- what is shown ----------------------------------------------------------------------------------------------------


def whole(name: str) -> Callable[[Records], pd.DataFrame]:
    """The record as it is."""
    return lambda records: records.read(name)


def chosen(name: str, column: str, values: tuple[str, ...]) -> Callable[[Records], pd.DataFrame]:
    """Rows of a record by the values of one column; none where the record has no such column."""

    def table(records: Records) -> pd.DataFrame:
        found = records.read(name)
        return found[found[column].isin(values)] if column in found else pd.DataFrame()

    return table


def task_means(name: str, scores: tuple[str, ...]) -> Callable[[Records], pd.DataFrame]:
    """Mean over tasks by step, with its interval, of scores that the record of single tasks has."""

    def table(records: Records) -> pd.DataFrame:
        found = records.read(f"{name}-tasks")
        found = found[found["score"].isin(scores) & found["step"].notna()] if len(found) else found
        return summarise_groups(found, ["family", "score", "method", "step"], "value") if len(found) else found

    return table


def improvements(records: Records) -> pd.DataFrame:
    """By how much the scores of the MLP are above L2M's, paired by task."""
    found = records.read("uncertainty-tasks")
    if found.empty:
        return found
    found = found[found["score"].isin(["log_loss", "mse"]) & found["family"].isin(GP)]
    keys = ["family", "score", "step", "task"]
    wide = found.pivot_table(index=keys, columns="method", values="value").reset_index()
    wide["value"] = wide["mlp_random"] - wide["l2m"]
    return summarise_groups(wide, ["family", "score", "step"], "value")


def informative(records: Records) -> pd.DataFrame:
    """Precision and recall after step + 1 acquisitions; log loss and AUROC where single tasks are recorded."""
    shares = chosen("informative", "score", ("precision", "recall"))(records)
    losses = task_means("informative", ("log_loss", "auroc"))(records)
    shifted = shares.assign(step=shares["step"] + 1) if len(shares) else shares
    return pd.concat([losses, shifted]) if len(losses) else shifted


def against_others(records: Records) -> pd.DataFrame:
    """A record of an earlier run names no method that the gain is against: it was random order from the same model."""
    table = records.read("context_length")
    return table[table["against"] != "l2m_random"] if "against" in table else pd.DataFrame()


def outcome_scores(records: Records) -> pd.DataFrame:
    """MSE of continuous outcomes, AUROC of classes."""
    return chosen("acquisition", "score", ("mse", "auroc"))(records)


# -- how --------------------------------------------------------------------------------------------------------------


def by_score(table: pd.DataFrame) -> go.Figure:
    """A panel for each family and score."""
    names = table["score"].map(lambda score: SCORE_NAMES.get(score, score))
    shown = table.assign(panel=table["family"].map(figures.named) + ": " + names)
    return figures.lines(shown, "step", "value", "method", "panel", "acquisitions", "mean over tasks")


def improvement_lines(table: pd.DataFrame) -> go.Figure:
    """A panel for each score, a line for each kernel."""
    shown = table.assign(panel=table["score"].map(SCORE_NAMES))
    return figures.lines(shown, "step", "value", "family", "panel", "acquisitions, random order", "MLP minus L2M")


def context_lines(table: pd.DataFrame) -> go.Figure:
    shown = table.assign(
        panel=table["what"].map({"context": "by context rows", "missing": "by missingness"}),
        line=table["family"].map(figures.named) + ", against " + table["against"].map(figures.named),
    )
    title = "context rows, or share of the largest missingness"
    return figures.lines(shown, "amount", "gain", "line", "panel", title, "gain (nats)")


def missingness_bars(table: pd.DataFrame) -> go.Figure:
    shown = table[table["variant"] == "real"]
    return figures.bars(shown, "family", "log_loss", "method", "table, its own pattern of holes", "log loss (nats)")


def error_lines(table: pd.DataFrame) -> go.Figure:
    """l2 error by the number of samples; bars are standard deviations over tasks, where the record has them."""
    tempered = "Pathwise, T = " + table["temperature"].astype(str)
    shown = table.assign(line=tempered.where(table["estimator"] == "gumbel", "REINFORCE"))
    if "l2_error_std" in shown:
        low, high = shown["l2_error"] - shown["l2_error_std"], shown["l2_error"] + shown["l2_error_std"]
        shown = shown.assign(l2_error_low=low, l2_error_high=high)
    figure = figures.lines(shown, "samples", "l2_error", "line", "family", "samples", "l2 error to the reference")
    return figure.update_xaxes(type="log", tickvals=sorted(set(shown["samples"])))


def ablation_lines(table: pd.DataFrame) -> go.Figure:
    """Records of earlier runs have random orders only."""
    shown = table[table["order"] == ablations.RANDOM] if "order" in table else table
    return figures.lines(shown, "step", "log_loss", "method", "family", "acquisitions, random order", "log loss (nats)")


DRAWINGS = {
    "coverage": Drawing(
        "uncertainty",
        chosen("uncertainty", "score", ("coverage",)),
        uncertainty.figure,
        "The paper has a panel for each of several acquisition steps; our record averages coverage over the steps 1 to 10, and "
        "has a panel for each kernel. The paper's bands are standard errors.",
        wanted=GP,
    ),
    "acquisition": Drawing(
        "acquisition",
        whole("acquisition"),
        acquisition.figure,
        "Log loss of continuous outcomes is of the outcome in standard deviations.",
        wanted=(*GP, *REAL),
    ),
    "planning": Drawing(
        "planning",
        whole("planning"),
        planning.figure,
        "The greedy and the lookahead policy share one frozen predictor.",
        wanted=("bnn", "bnn_plan"),
    ),
    "uncertainty_drawn": Drawing(
        "uncertainty",
        task_means("uncertainty", ("kl_to_truth", "brier_to_truth", "auroc")),
        by_score,
        "The paper's tasks have rows of a real table and drawn labels; those of ours that are named BNN are drawn whole.",
        takes=lambda family: family == "bnn" or is_drawn(family),
        wanted=("bnn",),
    ),
    "uncertainty_real": Drawing(
        "uncertainty",
        task_means("uncertainty", ("log_loss", "brier", "auroc")),
        by_score,
        "Random orders, real outcomes.",
        takes=lambda family: family in REAL,
        wanted=tuple(name for name in REAL if name in ("metabric", "miniboone", "hospital_death")),
    ),
    "improvements": Drawing(
        "uncertainty",
        improvements,
        improvement_lines,
        "Above zero L2M is better than the task's own MLP; MSE is of the outcome in standard deviations.",
        wanted=GP,
    ),
    "acquisition_scores": Drawing(
        "acquisition", outcome_scores, by_score, "MSE is of the outcome in standard deviations.", wanted=(*GP, *REAL)
    ),
    "context": Drawing(
        "context_length",
        against_others,
        context_lines,
        "Gain: log loss of a method trained on the task minus L2M's. The paper's second family is MIMIC-LOS, ours tasks of the "
        "BNN prior. A record in which the gain is over random order from the same model is not drawn: that is another quantity.",
        wanted=("gp_rbf", "bnn"),
    ),
    "informative_drawn": Drawing(
        "informative",
        informative,
        by_score,
        "METABRIC's or MiniBooNE's rows in place of MIMIC-IV's. Log loss and AUROC stand here once the record of single tasks "
        "does (`informative-tasks.csv.gz`, which the same command writes).",
        takes=is_drawn,
        wanted=("metabric_bnn",),
    ),
    "informative_synthetic": Drawing(
        "informative",
        informative,
        by_score,
        "Log loss and AUROC stand here once the record of single tasks does (`informative-tasks.csv.gz`, which the same command "
        "writes).",
        takes=lambda family: not is_drawn(family),
        wanted=("synthetic",),
    ),
    "zero_shot": Drawing(
        "zero_shot",
        whole("zero_shot"),
        log_loss_by_step,
        "At the scale reduced L2M is the study's L2M-Syn, reduced, and the general model stands beside it; at the scale small "
        "L2M is the general model, which was trained on made-up tasks alone and is not the paper's L2M-Syn. Models of the "
        "tables' own covariates are asked about rows that they never saw, and stand on a page of their own ([own_covariates.md]"
        "(own_covariates.md)).",
        wanted=REAL[:2] + HOSPITAL,
    ),
    "adaptivity": Drawing(
        "adaptivity",
        whole("adaptivity"),
        log_loss_by_step,
        "Choices for each patient against the majority's at each step.",
        wanted=("metabric", "miniboone", "hospital_death"),
    ),
    "real_missingness": Drawing(
        "real_missingness",
        whole("real_missingness"),
        missingness_bars,
        "Mean log loss over the steps, where the paper has real labels of MIMIC-IV; ours are drawn for the rows of other tables.",
        wanted=("hospital",),
    ),
    "gradient_errors": Drawing(
        "gradients",
        chosen("gradients", "part", ("samples",)),
        error_lines,
        "METABRIC's rows in place of MIMIC-IV's. Bars are standard deviations over tasks, as the paper's; none where the record "
        "lacks them.",
        wanted=("bnn_plan", "metabric_bnn"),
    ),
    "ablations": Drawing(
        "ablations",
        whole("ablations"),
        ablation_lines,
        "Random orders, the same for all three; the paper's tasks are of several data sets, ours of one prior.",
    ),
    "maps_drawn": Drawing(
        "policy_maps",
        chosen("policy_maps", "method", ("l2m",)),
        policy_maps.figure,
        "METABRIC's rows in place of MIMIC-IV's.",
        takes=is_drawn,
        wanted=("metabric_bnn",),
    ),
    "maps_real": Drawing(
        "policy_maps",
        chosen("policy_maps", "method", ("l2m",)),
        policy_maps.figure,
        "Other tables in place of MIMIC-IV.",
        takes=lambda family: not is_drawn(family),
        wanted=("hospital_death",),
    ),
}
"""By the names in published.yaml."""
