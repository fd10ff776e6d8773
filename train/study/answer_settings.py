"""`python -m train answer_settings`: what each answer setting is worth, on held-out synthetic tasks with classes.

The best setting by log loss is printed as the line that a release config takes.
"""

from __future__ import annotations

import argparse
import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from l2m_core.answering.calibration import best_exponent, can_be_calibrated, cross_fitted
from l2m_core.answering.settings import AnswerSettings
from l2m_core.cli import at_least, program, purpose
from l2m_core.cohort import Cohort
from l2m_core.errors import RangeWarning
from l2m_core.memory import L2M, CohortMemory, load
from l2m_core.metrics import ece, log_loss, paired_interval
from l2m_core.paths import folder_to_write
from train.study.evaluation.report import publish
from train.study.experiments.families import Family, draw
from train.study.markdown import markdown_table

VIEWS = (1, 2)
AGAINST_REST = (0.0, 0.5, 0.75, 1.0)
PREVALENCE = (0.0, 0.5, 1.0)
EXPONENT_SPREAD = (0.0, 0.2, 0.3, 0.5)
WITH_EXPONENT = ((1, 0.0, 0.0), (1, 0.75, 0.0), (1, 0.75, 0.5), (2, 0.75, 0.0), (2, 0.75, 0.5))
"""(views, against_rest, prevalence) that are tried with it: each reads every task four times more."""
TEMPERATURE = (0.85, 0.9, 0.95, 1.0, 1.05, 1.1)
SETTINGS = ["views", "against_rest", "prevalence", "exponent_spread", "temperature"]
PLAIN = (1, 0.0, 0.0, 0.0, 1.0)
# Their tasks follow from their names.
# Outcomes that the features all but determine, as in a table of clear-cut diagnoses.
DETERMINED = {"temperature": [14.0, 60.0], "noiseless_share": 0.5}
# Signs that are seldom there without the disease, and seldom absent with it.
CLEAR_SIGNS = {
    "forms": 1,
    "informative": [0.7, 1.0],
    "sensitivity": [0.6, 1.0],
    "background": [0.003, 0.05],
    "error": [0.002, 0.01],
}
FAMILIES = tuple(
    Family(f"care_{name}", prior=prior, settings=settings, features=features, context=context, test_rows=60)
    for name, prior, settings, features, context in (
        ("small", "synthetic", {}, 5, 80),
        ("middle", "synthetic", {}, 12, 160),
        ("wide", "synthetic", {}, 28, 120),
        ("long", "synthetic", {}, 12, 420),
        ("findings", "findings", {}, 12, 160),
        ("findings_wide", "findings", {}, 28, 120),
        ("determined", "synthetic", DETERMINED, 12, 100),
        ("determined_wide", "synthetic", DETERMINED, 28, 60),
        ("signs", "signs", {}, 16, 100),
        ("signs_wide", "signs", CLEAR_SIGNS, 34, 60),
    )
)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog=program("train", "answer_settings"), description=purpose(__doc__))
    parser.add_argument("--model", default="general", help="a released model's name or folder")
    parser.add_argument("--tasks", type=at_least(1), default=25, help="of each family")
    parser.add_argument(
        "--one-view", action="store_true", help="without what reads a task twice or more: views, exponents"
    )
    parser.add_argument("--out", type=folder_to_write, default=Path("docs/results"))
    given = parser.parse_args(arguments)
    model = load(given.model)
    views, with_exponent = (VIEWS[:1], ()) if given.one_view else (VIEWS, WITH_EXPONENT)
    rows = []
    for family in FAMILIES:
        for index in range(given.tasks):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RangeWarning)
                rows += list(judge(model, family, index, views, with_exponent))
    options = f"--tasks {given.tasks}{' --one-view' if given.one_view else ''}"
    command = f"`python -m train answer_settings {options}`, model {model.fingerprint[:12]}."
    page = f"{HEAD}\n{command}\n\n{table(rows, model.release.inference)}\n"
    publish(given.out / "answer_settings.md", page)
    return 0


def judge(
    model: L2M,
    family: Family,
    index: int,
    some_views: Sequence[int] = VIEWS,
    with_exponent: Sequence[tuple[int, float, float]] = WITH_EXPONENT,
) -> Iterator[dict]:
    """Log loss and calibration error of one task under every setting; a random part of each query is known."""
    trial = draw(family, index, Path())
    x = known_in_part(trial.x, index)
    classes = trial.context.n_classes
    memories: dict[tuple[int, float], CohortMemory] = {}
    for views, against_rest in product(some_views, AGAINST_REST):
        # The order of classes is none to choose here: a model is trained for one.
        class_order = model.release.inference.class_order
        inference = AnswerSettings(views=views, class_order=class_order, against_rest=against_rest)
        key = views, against_rest if classes > 2 else 0.0  # of two classes there is no rest
        if key not in memories:
            memories[key] = with_inference(model, inference).read(trial.context)
        for prevalence in PREVALENCE:
            moved = with_inference(model, dataclasses.replace(inference, prevalence=prevalence))
            p = dataclasses.replace(memories[key], release=moved.release).predict_array(x)
            exponents = {0.0: 1.0}
            if (views, against_rest, prevalence) in with_exponent:
                exponents |= find_exponents(moved, trial.context)
            for (spread, exponent), temperature in product(exponents.items(), TEMPERATURE):
                sharpened = np.maximum(p, 1e-12) ** (exponent / temperature)
                sharpened /= sharpened.sum(1, keepdims=True)
                yield {
                    "family": family.name,
                    "task": index,
                    "views": views,
                    "against_rest": against_rest,
                    "prevalence": prevalence,
                    "exponent_spread": spread,
                    "temperature": temperature,
                    "log_loss": log_loss(sharpened, trial.y),
                    "ece": ece(sharpened, trial.y, bins=10),
                }


def known_in_part(x: np.ndarray, seed: int) -> np.ndarray:
    """(n, d) with a random share of each row hidden."""
    generator = np.random.default_rng(seed)
    hidden = generator.random(x.shape) < generator.random((len(x), 1))
    return np.where(hidden, np.nan, x).astype(np.float32)


def with_inference(model: L2M, inference: AnswerSettings) -> L2M:
    return L2M(dataclasses.replace(model.release, inference=inference))


def find_exponents(model: L2M, cohort: Cohort) -> dict[float, float]:
    """The cohort's exponent for each value of `exponent_spread`."""
    spreads = EXPONENT_SPREAD[1:]
    if not can_be_calibrated(cohort):
        return dict.fromkeys(spreads, 1.0)
    log_p, y = cross_fitted(cohort, lambda part: model.read(part).predict_array)
    return {spread: best_exponent(log_p, y, spread) for spread in spreads}


def table(rows: list[dict], shipped: AnswerSettings) -> str:
    """Each setting alone, those of the released model, and the best of all, beside the plain answers."""
    frame = pd.DataFrame(rows).set_index(SETTINGS)
    plain = frame.loc[[PLAIN]].set_index(["family", "task"])["log_loss"]
    means = frame.groupby(level=SETTINGS)["log_loss"].mean()
    best = means.idxmin()
    parts = (VIEWS, AGAINST_REST, PREVALENCE, EXPONENT_SPREAD, TEMPERATURE)
    alone: list[tuple[float, ...]] = [PLAIN]
    for index, values in enumerate(parts):
        alone += [(*PLAIN[:index], value, *PLAIN[index + 1 :]) for value in values if value != PLAIN[index]]
    own = (shipped.views, shipped.against_rest, shipped.prevalence, shipped.exponent_spread, shipped.temperature)
    shown = []
    for setting in dict.fromkeys(setting for setting in (*alone, own, best) if setting in means.index):
        part = frame.loc[[setting]].set_index(["family", "task"])
        saved = (plain - part["log_loss"]).to_numpy()
        shown.append(
            dict(zip(frame.index.names, setting, strict=True))
            | {"log_loss": part["log_loss"].mean(), "ece": part["ece"].mean()}
            | {"saved": str(paired_interval(saved)) if saved.any() else "—"}
        )
    line = f"inference: {{{', '.join(f'{name}: {value:g}' for name, value in zip(SETTINGS, best, strict=True))}}}"
    told = (
        f"Shipped: {own[0]} views, {own[1]:g} of the answer from one class against the rest, {own[2]:g} of the "
        f"prevalence, exponent spread {own[3]:g}, temperature {own[4]:g}. Each view, and each class against the rest, "
        "costs a whole answer; the exponent costs four readings more of a short cohort, once."
    )
    return f"{markdown_table(pd.DataFrame(shown))}\n\n{told}\n\nBest by log loss: `{line}`."


HEAD = """# Answer settings, measured on held-out synthetic tasks

Log loss in nats and calibration error, mean over tasks; queries are known in random part. `saved`: nats against the plain answer,
with a 95% interval over tasks.
"""
