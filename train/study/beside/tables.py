"""What our records say in the places of the paper's tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from l2m_core.answering.release import FACTS
from l2m_core.methods.study import study_settings
from l2m_core.paths import study_folders
from l2m_core.settings import read_settings
from train.study.beside.records import NO_RECORD, Records, scale_line
from train.study.experiments.datasets import find_cohort
from train.study.experiments.experiment import experiment_settings, scales_of

CONFIGS = Path(__file__).parents[2] / "configs"
COMMAND = "python -m train beside_the_paper"


@dataclass(frozen=True)
class Ours:
    """Of one table: the cells that we have, by row and column, and what a reader must know of them."""

    cells: dict[tuple[str, str], str]
    scale: str
    """Beside the paper's, in one line."""
    made: tuple[str, ...]
    """How each number was made, and what is missing or another quantity."""


# -- label prevalences ------------------------------------------------------------------------------------------------

PREVALENCES = "prevalences"
TABLES = {
    "MiniBooNE": "miniboone",
    "MIMIC-LOS": "hospital_long_stay",
    "MIMIC-Readmission": "hospital_readmission",
    "MIMIC-Mortality": "hospital_death",
}
"""Row of the paper's table → our name of the data set."""


def measure_prevalences(data: Path) -> pd.DataFrame:
    """Of the study's data sets as experiments find them in the folder, stand-ins included, which the note owns up to."""
    rows = []
    for name in TABLES.values():
        found = find_cohort(name, data)
        cohort = found.load()
        share = 100 * float((cohort.y == 1).mean())
        rows.append({"data": name, "percent": share, "rows": len(cohort), "note": found.note})
    return pd.DataFrame(rows)


def prevalences(records: Records) -> Ours:
    table = records.read(PREVALENCES)
    if table.empty:
        return Ours({}, NO_RECORD, (f"{NO_RECORD.capitalize()}: `{COMMAND} --data FOLDER` measures the tables there.",))
    own = table.fillna({"note": ""}).set_index("data")
    cells = {
        (row, "% Positive"): f"{own.percent[name]:.2f}{' (stand-in)' if own.note[name] else ''}"
        for row, name in TABLES.items()
        if name in own.index
    }
    sizes = ", ".join(f"{row} {own.rows[name]:,}" for row, name in TABLES.items() if name in own.index)
    notes = [note for note in own.note if note]
    if notes:
        notes.insert(
            0,
            "A stand-in is another table, which our experiments ask about in place of the paper's; its share is its own.",
        )
    return Ours(
        cells,
        f"all rows of the tables at hand: {sizes}",
        (f"`{COMMAND} --data FOLDER`, kept in [{PREVALENCES}.csv]({PREVALENCES}.csv).", *notes),
    )


# -- the models -------------------------------------------------------------------------------------------------------

MODELS = {"GP": "gp", "MiniBooNE": "miniboone", "MNIST": "mnist", "Metabric": "metabric", "MIMIC-IV": "mimic"}
MECHANISMS = {"mcar": "MCAR", "mar_baseline": "MAR"}


def setup(records: Records) -> Ours:
    """Of the released models of the study; `records` are not asked, since a model's facts stand beside its weights."""
    cells: dict[tuple[str, str], str] = {}
    without = []
    for row, name in MODELS.items():
        job = _facts(f"{name}-reduced").get("training", {}).get("job")
        if job is None:
            without.append(f"{row} (`{_training(name)}`)")
            continue
        shares = job["prior"]["settings"].get("missingness", {})
        cells[row, "Sequence length N"] = ", ".join(map(str, _rows(job)))
        cells[row, "Missingness"] = ", ".join(MECHANISMS[m] for m in MECHANISMS if shares.get(m)) or "the prior's own"
        cells[row, "Task"] = _task(_facts(f"{name}-reduced")["model"])
    made = ["Read from the facts of the released models (`pretrained/study/NAME/model.yaml`)."]
    if without:
        made.append(f"{NO_RECORD.capitalize()}, since no model was released: {', '.join(without)}.")
    return Ours(cells, "the study's models, reduced to what one CPU core trains", tuple(made))


def _rows(job: dict[str, Any]) -> list[int]:
    """Of the sequences that it trained on."""
    return sorted({n for stage in job["stages"] for n in stage["rows"]})


def _task(model: dict[str, Any]) -> str:
    if model["outcome"] == "continuous":
        return "Regression"
    return "Binary Classification" if model["max_classes"] == 2 else "Multi-class Classification"


def _training(name: str) -> str:
    """The command that trains the data set's predictor: reduced, where there is such a config."""
    scale = next((s for s in ("reduced", "study") if (CONFIGS / f"{name}_{s}.yaml").is_file()), "study")
    return f"python -m train predictor --config train/configs/{name}_{scale}.yaml"


def _facts(model: str) -> dict[str, Any]:
    folder = study_folders().get(model)
    return read_settings(folder / FACTS) if folder else {}


ARCHITECTURE = {
    "Hidden Layer Size": "feedforward",
    "Model Dimension": "width",
    "Number of Layers": "layers",
    "Attention Heads": "heads",
    "Embedding Depth": "embedder_depth",
}


def hyperparameters(records: Records) -> Ours:
    """Of all released models of the study; a cell has every value that occurs."""
    facts = [_facts(name) for name in study_folders()]
    jobs = [f["training"]["job"] for f in facts if f.get("training", {}).get("job")]
    policies = [job for job in jobs if "policy" in job]
    predictors = [job for job in jobs if "policy" not in job] + [_config(Path(job["init"]).name) for job in policies]
    found = {row: {f["model"][key] for f in facts} for row, key in ARCHITECTURE.items()}
    found["Predictor Learning Rate"] = {job["loop"]["lr"] for job in predictors}
    found["Policy Learning Rate"] = {job["loop"]["lr"] for job in policies}
    found["Warmup steps"] = {job["loop"]["warmup"] for job in [*predictors, *policies]}
    cells = {(row, "Value"): ", ".join(map(_short, sorted(values))) for row, values in found.items() if values}
    cells["Dropout", "Value"] = "0"
    return Ours(
        cells,
        f"reduced models for one CPU core: {', '.join(study_folders())}",
        (
            "Read from the models' facts (`pretrained/study/NAME/model.yaml`) and, of the predictor's training, from the config "
            "that trained it (`train/configs/*_reduced.yaml`). Our models have no dropout to set.",
            "`train/configs/*_study.yaml` have the paper's own values; no model was trained with them here.",
        ),
    )


def _config(name: str) -> dict[str, Any]:
    return read_settings(CONFIGS / f"{name}.yaml")


def _short(value: float) -> str:
    """1 × 10^-4 as the paper writes rates; other numbers as they are."""
    if isinstance(value, int):
        return str(value)
    digits, exponent = f"{value:e}".split("e")
    return f"{float(digits):g} × 10^{int(exponent)}"


def pretraining(records: Records) -> Ours:
    """Of the reduced GP model, from the ends of the curves that lie beside it."""
    folder = study_folders().get("gp-reduced")
    curves = sorted(folder.glob("curve-*.jsonl")) if folder else []
    ends = [json.loads(curve.read_text(encoding="utf-8").splitlines()[-1]) for curve in curves]
    if len(ends) < 2:
        return Ours({}, NO_RECORD, (f"{NO_RECORD.capitalize()}: `{_training('gp')}` trains the predictor.",))
    hours = sum(end["seconds"] for end in ends) / 3600
    steps = " and ".join(f"{end['step']:,}" for end in ends)
    rows = ", ".join(map(str, _rows(_facts("gp-reduced")["training"]["job"])))
    return Ours(
        {("Predictor and policy on the GP prior", "Hours"): f"{hours:.1f}"},
        f"{steps} steps (predictor, policy) of a reduced model on sequences of {rows}, one CPU core",
        ("The seconds at the ends of the training curves beside `pretrained/study/gp-reduced`.",),
    )


# -- runtimes ---------------------------------------------------------------------------------------------------------

RUNTIME_ROWS = {"Baseline Classifier": "mlp_random", "DIME": "dime", "GDFS": "gdfs"}


def runtimes(records: Records) -> Ours:
    table = records.read("runtimes")
    cells: dict[tuple[str, str], str] = {}
    for row, method in RUNTIME_ROWS.items():
        for own in table[table["method"] == method].head(1).itertuples() if len(table) else ():
            cells[row, "Tasks (n)"] = str(own.tasks)
            cells[row, "Epochs"] = epochs_of(method, records.scale("runtimes"))
            cells[row, "Median Time (s)"] = f"{own.median_fit_seconds:.2f}"
            cells[row, "Total Time (s)"] = f"{own.total_seconds:.2f} (answering included)"
    also = "Medians are of training alone, as the paper's; the record's totals are of training and answering together."
    return _of_experiment(records, "runtimes", cells, list(table["family"].unique()) if len(table) else [], also)


def epochs_of(method: str, scale: str) -> str:
    """The study's where a run had its baselines; this project's own schedules end early, at epochs that nobody records."""
    if scale in scales_of("runtimes") and experiment_settings("runtimes", scale).baselines == "study":
        return str(study_settings(method)["schedule"].epochs)
    return "not recorded (ends early)"


# -- gradients --------------------------------------------------------------------------------------------------------

ESTIMATORS = {
    "Pathwise 1-step (T=0.5, n=4)": ("pathwise, 1 step", 4),
    "Pathwise 2-step (T=0.5, n=4)": ("pathwise, 2 steps", 4),
    "Offline IPW REINFORCE 5-step (n=64)": ("offline", 64),
    "Offline IPW REINFORCE 5-step (n=128)": ("offline", 128),
    "Semi-offline IPW REINFORCE 5-step (n=64)": ("semi-offline", 64),
    "Semi-offline IPW REINFORCE 5-step (n=128)": ("semi-offline", 128),
}
METRICS = {
    "Bias norm (↓)": ("l2_error", 3),
    "Rel. bias (↓)": ("relative_error", 2),
    "Cosine sim (↑)": ("cosine", 2),
}
SYNTHETIC = "bnn_plan"


def gradients(records: Records) -> Ours:
    table = records.read("gradients")
    holes = table[(table["part"] == "holes") & (table["family"] == SYNTHETIC)] if len(table) else table
    cells = {}
    for row, (estimator, samples) in ESTIMATORS.items():
        own = holes[(holes["estimator"] == estimator) & (holes["samples"] == samples)] if len(holes) else holes
        if len(own):
            for column, (score, digits) in METRICS.items():
                cells[row, column] = _mean_and_spread(own.iloc[0], score, digits)
    notes = [
        f"Of the family {SYNTHETIC}, the policy being a small network's; propensities by logistic regression, as theirs."
    ]
    others = (
        sorted({(e, int(n)) for e, n in zip(holes["estimator"], holes["samples"], strict=True)}) if len(holes) else []
    )
    unasked = [f"{e} (n={n})" for e, n in others if (e, n) not in ESTIMATORS.values()]
    if unasked:
        notes.append(
            f"The record at hand has {', '.join(unasked)} in place of the paper's estimates, which is another quantity and is "
            "not put into the table; `python -m train reproduce gradients --scale small` makes the paper's."
        )
    return _of_experiment(records, "gradients", cells, [SYNTHETIC] if len(holes) else [], *notes)


def _mean_and_spread(own: pd.Series, score: str, digits: int) -> str:
    spread = own.get(f"{score}_std")
    return f"{own[score]:.{digits}f}" + (f" ± {spread:.{digits}f}" if spread is not None and spread == spread else "")


def _of_experiment(records: Records, name: str, cells: dict, families: Iterable[str], *notes: str) -> Ours:
    made = records.made(name)
    if not made:
        missing = f"{NO_RECORD.capitalize()}: `python -m train reproduce {name} --scale small` makes one."
        return Ours({}, NO_RECORD, (missing,))
    return Ours(cells, scale_line(records, name, families), (*made, *notes))


OURS: dict[str, Callable[[Records], Ours]] = {
    "prevalences": prevalences,
    "setup": setup,
    "runtimes": runtimes,
    "hyperparameters": hyperparameters,
    "gradients": gradients,
    "pretraining": pretraining,
}
"""By the names in published.yaml."""
